// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_DISCOVERY_H_
#define OUTRIDER_COORDINATOR_POOL_DISCOVERY_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/rpc/resolver.h"

namespace outrider {

// Keeps names resolved, each on a thread of its own: the resolver may block for
// half a minute, and other names are not to wait for that. Where nobody can be
// asked, the addresses known so far stay. What is referred to must outlive it,
// and be thread-safe. Its end does not wait for an answer.
class Discovery {
 public:
  struct Options {
    Resolver& resolver;
    std::vector<std::string> names = {};  // HOST:PORT
    std::chrono::milliseconds period = std::chrono::seconds(30);
    // The period of a name whose addresses are of no use: its nodes start, or
    // have moved.
    std::chrono::milliseconds unserved_period = std::chrono::seconds(1);
    std::function<bool(const std::string& name)> is_served = {};
    // Told when a name's addresses have changed.
    std::function<void(const std::string& name,
                       const std::vector<std::string>& addresses)>
        on_change = {};
  };

  explicit Discovery(Options options);
  ~Discovery();

 private:
  using Clock = std::chrono::steady_clock;
  // What its thread knows of a name.
  struct Name {
    const std::string name;
    std::optional<std::vector<std::string>> addresses = {};
    Clock::time_point last_asked = {};
    bool is_failing = false;
  };

  void Run(const std::string& name, const std::stop_token& stop);
  bool IsDue(const Name& name) const;
  void Resolve(Name& name, const std::stop_token& stop);

  const Options options_;
  std::vector<std::jthread> threads_;  // last: they use the options
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_DISCOVERY_H_
