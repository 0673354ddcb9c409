// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/rpc/endpoint.h"

namespace outrider {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::set<std::string> AddressesOf(const addrinfo* list, int family) {
  std::set<std::string> addresses;
  for (; list != nullptr; list = list->ai_next) {
    if (list->ai_family != family) continue;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    if (getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      continue;
    }
    addresses.insert(family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                        : absl::StrCat(host, ":", port));
  }
  return addresses;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SystemResolver::Resolve(
    const std::string& endpoint) {
  const std::string host(HostOf(endpoint));
  const std::string port(PortOf(endpoint));
  const addrinfo hints = {.ai_flags = AI_NUMERICSERV,
                          .ai_family = AF_UNSPEC,
                          .ai_socktype = SOCK_STREAM,
                          .ai_protocol = 0,
                          .ai_addrlen = 0,
                          .ai_addr = nullptr,
                          .ai_canonname = nullptr,
                          .ai_next = nullptr};
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  const AddressList owner(list, &freeaddrinfo);
  if (error == EAI_NONAME || error == EAI_NODATA) {
    return std::vector<std::string>();
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat(host, " cannot be resolved: ", gai_strerror(error)));
  }
  std::set<std::string> addresses = AddressesOf(list, AF_INET);
  if (addresses.empty()) addresses = AddressesOf(list, AF_INET6);
  return std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace outrider
