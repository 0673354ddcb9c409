// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outrider {

absl::Status CheckEndpoint(absl::string_view address, bool off_loopback,
                           absl::string_view flag) {
  const absl::string_view host = HostOf(address);
  int port = -1;
  // A slash: a scheme, such as dns:///.
  if (host.empty() || absl::StrContains(host, '/') ||
      !absl::SimpleAtoi(PortOf(address), &port) || port < 0 || port > 65535) {
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

absl::string_view HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return "";
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return host;
}

absl::string_view PortOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  return colon == absl::string_view::npos ? "" : address.substr(colon + 1);
}

bool HasNumericHost(absl::string_view address) {
  const std::string host(HostOf(address));
  in6_addr bytes;  // large enough for both
  return inet_pton(AF_INET, host.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = HostOf(address);
  return host == "localhost" || host == "::1" ||
         (absl::StartsWith(host, "127.") && HasNumericHost(address));
}

}  // namespace outrider
