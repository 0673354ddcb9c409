// SPDX-License-Identifier: Apache-2.0
#include "core/node/free_ports.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/endpoint.h"

namespace outrider {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses Resolve(absl::string_view address) {
  const std::string host(HostOf(address));
  const std::string port(PortOf(address));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &freeaddrinfo};
}

// What a server would take, until it goes.
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    for (const int socket : sockets_) close(socket);
  }

  // One address of a name is enough for the servers. What cannot be resolved
  // is theirs to tell.
  bool Listens(const Addresses& addresses) {
    bool listens = addresses == nullptr;
    for (const addrinfo* one = addresses.get(); one != nullptr;
         one = one->ai_next) {
      listens = Takes(*one) || listens;
    }
    return listens;
  }

 private:
  // It listens too: sockets that are but bound with SO_REUSEADDR are no
  // hindrance to each other.
  bool Takes(const addrinfo& address) {
    const int socket =
        ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    sockets_.push_back(socket);
    // The servers do so too: connections of a process that has ended are no
    // hindrance.
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    return bind(socket, address.ai_addr, address.ai_addrlen) == 0 &&
           listen(socket, 0) == 0;
  }

  std::vector<int> sockets_;
};

bool IsWildcard(absl::string_view host) {
  return host == "::" || host == "0.0.0.0";
}

// gRPC tries both wildcards, whichever it is given, and needs one.
bool RpcListens(const std::string& address, Probe& probe) {
  if (!IsWildcard(HostOf(address))) return probe.Listens(Resolve(address));
  const absl::string_view port = PortOf(address);
  return probe.Listens(Resolve(absl::StrCat("[::]:", port))) ||
         probe.Listens(Resolve(absl::StrCat("0.0.0.0:", port)));
}

absl::Status Refusal(absl::string_view what, const std::string& address) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen ", what, address,
                   ": the port is in use, or the address is not of this "
                   "machine; port 0 picks a free one"));
}

}  // namespace

absl::Status CheckPortsAreFree(const ServerFlags& flags) {
  const std::string& listen = flags.rpc.listen;
  const std::string& http = flags.metrics_listen;
  // Before anything listens, as a name may take long.
  const Addresses of_http =
      http.empty() ? Addresses(nullptr, &freeaddrinfo) : Resolve(http);
  Probe probe;
  if (IsUnixSocket(listen)) {
    OUTRIDER_RETURN_IF_ERROR(CheckSocketIsFree(listen));
  } else if (!RpcListens(listen, probe)) {
    return Refusal("on ", listen);
  }
  // None is nothing to tell of.
  if (probe.Listens(of_http)) return absl::OkStatus();
  return Refusal("for HTTP on ", http);
}

}  // namespace outrider
