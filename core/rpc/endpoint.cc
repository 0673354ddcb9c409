// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/endpoint.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outrider {
namespace {

absl::string_view Host(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return "";
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return host;
}

}  // namespace

absl::Status CheckEndpoint(absl::string_view address, bool off_loopback,
                           absl::string_view flag) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (Host(address).empty() ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " needs HOST:PORT, such as 127.0.0.1:7001, not \"",
                     address, "\""));
  }
  if (!off_loopback && !IsLoopback(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " ", address,
        " is not on loopback, and the connection would be plain text; pass "
        "the --tls- flags, or --insecure if the network is trusted"));
  }
  return absl::OkStatus();
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = Host(address);
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

}  // namespace outrider
