// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_RESOLVER_H_
#define OUTRIDER_CORE_RPC_RESOLVER_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

struct addrinfo;  // of <netdb.h>

namespace outrider {

// Finds the addresses behind a name. Thread-safe.
class Resolver {
 public:
  virtual ~Resolver() = default;
  // All addresses of HOST:PORT, each as HOST:PORT with a numeric host, sorted
  // and each once; none where the name is known to have none. UNAVAILABLE:
  // nobody could be asked, which says nothing of the name, or `stop` was
  // requested. May block for seconds, but not much longer than until then.
  virtual absl::StatusOr<std::vector<std::string>> Resolve(
      const std::string& endpoint, const std::stop_token& stop) = 0;
};

// Asks the system: /etc/hosts, DNS. Of a name with IPv4 and IPv6 addresses it
// gives the former only: a pod that has one of each is one node, not two.
class SystemResolver final : public Resolver {
 public:
  // Returns what getaddrinfo does, and may take as long.
  using Lookup = std::function<int(const char* host, const char* port,
                                   const addrinfo* hints, addrinfo** list)>;

  SystemResolver();  // by getaddrinfo
  explicit SystemResolver(Lookup lookup);

  absl::StatusOr<std::vector<std::string>> Resolve(
      const std::string& endpoint, const std::stop_token& stop) override;

 private:
  const Lookup lookup_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_RESOLVER_H_
