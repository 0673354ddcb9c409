// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/stream_hints.h"
#include "core/rpc/endpoint.h"

namespace outrider {
namespace {

// How often who waits for an answer looks whether it is still to.
constexpr std::chrono::milliseconds kLook(50);

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

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

struct Answer {
  int error = 0;
  Addresses addresses{nullptr, &freeaddrinfo};
};

// Asks the system on a thread that may be left behind: where DNS hangs, it is
// answered in half a minute, and a program that ends does not wait for that.
std::future<Answer> Ask(SystemResolver::Lookup lookup, std::string host,
                        std::string port) {
  std::promise<Answer> promise;
  std::future<Answer> answer = promise.get_future();
  std::thread([promise = std::move(promise), lookup = std::move(lookup),
               host = std::move(host), port = std::move(port)]() mutable {
    addrinfo* list = nullptr;
    const int error = lookup(host.c_str(), port.c_str(), &kStreamHints, &list);
    promise.set_value({error, Addresses(list, &freeaddrinfo)});
  }).detach();
  return answer;
}

}  // namespace

SystemResolver::SystemResolver() : SystemResolver(&getaddrinfo) {}

SystemResolver::SystemResolver(Lookup lookup) : lookup_(std::move(lookup)) {}

absl::StatusOr<std::vector<std::string>> SystemResolver::Resolve(
    const std::string& endpoint, const std::stop_token& stop) {
  const std::string host(HostOf(endpoint));
  std::future<Answer> asked = Ask(lookup_, host, std::string(PortOf(endpoint)));
  while (asked.wait_for(kLook) == std::future_status::timeout) {
    if (stop.stop_requested()) {
      return absl::UnavailableError(absl::StrCat(host, " was not waited for"));
    }
  }
  const Answer answer = asked.get();
  const int error = answer.error;
  if (error == EAI_NONAME || error == EAI_NODATA) {
    return std::vector<std::string>();
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat(host, " cannot be resolved: ", gai_strerror(error)));
  }
  std::set<std::string> addresses =
      AddressesOf(answer.addresses.get(), AF_INET);
  if (addresses.empty()) {
    addresses = AddressesOf(answer.addresses.get(), AF_INET6);
  }
  return std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace outrider
