// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/endpoint.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outrider {
namespace {

constexpr absl::string_view kUnixScheme = "unix:";
// What a sockaddr_un holds, less the zero at its end.
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un{}.sun_path) - 1;

absl::Status CheckSocketPath(absl::string_view path, absl::string_view flag) {
  if (!path.empty() && path.size() <= kMaxSocketPath &&
      !absl::StartsWith(path, "//")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " needs unix:PATH with a path of at most ", kMaxSocketPath,
      " bytes, such as unix:/run/outrider.sock, not \"", path, "\""));
}

// A slash: a scheme, such as dns:///.
bool IsHost(absl::string_view host) {
  return !host.empty() && absl::c_none_of(host, [](unsigned char c) {
    return c == '/' || absl::ascii_isspace(c) || absl::ascii_iscntrl(c);
  });
}

bool HasBrackets(absl::string_view address) {
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
}

bool HasNumericHost(absl::string_view address) {
  const std::string host(HostOf(address));
  in6_addr bytes;  // large enough for both
  return inet_pton(AF_INET, host.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

// Whether a server could make it, in place of one left behind too.
bool CanMakeSocket(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) == 0 &&
      (stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode))) {
    return false;
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK,
                   AT_EACCESS) == 0;
}

// None: it is no port. SimpleAtoi alone would take blanks and signs.
std::optional<int> PortNumber(absl::string_view text) {
  int port = -1;
  if (!absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &port) || port > 65535) {
    return std::nullopt;
  }
  return port;
}

}  // namespace

absl::Status CheckEndpoint(absl::string_view address, bool off_loopback,
                           absl::string_view flag, EndpointUse use) {
  if (IsUnixSocket(address)) {
    return CheckSocketPath(absl::StripPrefix(address, kUnixScheme), flag);
  }
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag,
                     " needs HOST:PORT, such as 127.0.0.1:7001, or unix:PATH, "
                     "not \"",
                     address, "\"", what));
  };
  const std::optional<int> port = PortNumber(PortOf(address));
  if (!IsHost(HostOf(address)) || !port.has_value()) {
    return refuse("");
  }
  if (absl::StrContains(HostOf(address), ':') && !HasBrackets(address)) {
    return refuse(": an IPv6 host stands in brackets, such as [::1]:7001");
  }
  if (*port == 0 && use == EndpointUse::kCalls) {
    return refuse(": nobody can be called at port 0");
  }
  if (!off_loopback && !IsLoopback(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " ", address,
        " is not on loopback, and the connection would be plain text; pass "
        "the --tls- flags, or --insecure if the network is trusted"));
  }
  return absl::OkStatus();
}

bool IsUnixSocket(absl::string_view address) {
  return absl::StartsWith(address, kUnixScheme);
}

absl::Status CheckSocketIsFree(absl::string_view address) {
  const absl::string_view path = absl::StripPrefix(address, kUnixScheme);
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  std::copy(path.begin(), path.end(), name.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_served =
      connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) ==
      0;
  close(socket);
  if (!is_served && CanMakeSocket(name.sun_path)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address,
                   is_served ? ": another server listens there"
                             : ": no socket file can be made there"));
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

bool IsResolved(absl::string_view address) {
  return IsUnixSocket(address) || HasNumericHost(address);
}

bool IsLoopback(absl::string_view address) {
  if (IsUnixSocket(address)) return true;
  const absl::string_view host = HostOf(address);
  return host == "localhost" || host == "::1" ||
         (absl::StartsWith(host, "127.") && HasNumericHost(address));
}

}  // namespace outrider
