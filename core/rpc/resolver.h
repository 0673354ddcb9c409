// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_RESOLVER_H_
#define OUTRIDER_CORE_RPC_RESOLVER_H_

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

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
  absl::StatusOr<std::vector<std::string>> Resolve(
      const std::string& endpoint, const std::stop_token& stop) override;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_RESOLVER_H_
