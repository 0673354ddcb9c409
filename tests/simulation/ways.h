// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_WAYS_H_
#define OUTRIDER_TESTS_SIMULATION_WAYS_H_

#include <chrono>
#include <map>

#include "core/base/session_id.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/simulated_stub.h"

namespace outrider::testing {

// How long a step may take where no other node could answer it.
inline constexpr std::chrono::milliseconds kStepTimeout(300);

// All sessions' ways to one node: what their stubs share.
template <typename Node>
class Ways {
 public:
  using Way = typename SimulatedStub<Node>::Way;

  Ways(Cluster& cluster, Node& node, int index)
      : way_({.loop = cluster.loop,
              .network = cluster.network,
              .node = node,
              .index = index,
              .protocol = cluster.protocol}) {}
  SimulatedStub<Node>& Of(const SessionId& session) {
    return stubs_.try_emplace(session, way_).first->second;
  }
  const Way& way() const { return way_; }

 private:
  const Way way_;
  std::map<SessionId, SimulatedStub<Node>> stubs_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_WAYS_H_
