// SPDX-License-Identifier: Apache-2.0
#include "core/node/free_ports.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/endpoint.h"

namespace outrider {
namespace {

bool CanBind(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;  // without IPv6 gRPC listens on IPv4
  // The servers do so too: connections of a process that has ended are no
  // hindrance.
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool is_bound = bind(socket, address.ai_addr, address.ai_addrlen) == 0;
  close(socket);
  return is_bound;
}

// One address of a name is enough for the servers. What cannot be resolved is
// theirs to tell.
bool CanListen(const std::string& address) {
  const std::string host(HostOf(address));
  const std::string port(PortOf(address));
  if (port == "0") return true;
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return true;
  bool can_bind = false;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    can_bind = can_bind || CanBind(*one);
  }
  freeaddrinfo(found);
  return can_bind;
}

absl::Status CheckPort(absl::string_view what, const std::string& address) {
  if (CanListen(address)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen ", what, address,
                   ": the port is in use, or the address is not of this "
                   "machine; port 0 picks a free one"));
}

}  // namespace

absl::Status CheckPortsAreFree(const ServerFlags& flags) {
  const std::string& listen = flags.rpc.listen;
  OUTRIDER_RETURN_IF_ERROR(IsUnixSocket(listen) ? CheckSocketIsFree(listen)
                                                : CheckPort("on ", listen));
  if (flags.metrics_listen.empty()) return absl::OkStatus();
  return CheckPort("for HTTP on ", flags.metrics_listen);
}

}  // namespace outrider
