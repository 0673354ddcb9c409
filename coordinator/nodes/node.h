// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_NODE_H_
#define OUTRIDER_COORDINATOR_NODES_NODE_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/control/draft_length_controls.h"
#include "coordinator/nodes/move_gate.h"
#include "coordinator/nodes/pulse.h"
#include "coordinator/nodes/shared_stubs.h"
#include "coordinator/nodes/step_pace.h"
#include "coordinator/nodes/suspect_places.h"
#include "coordinator/peers/circuit_breaker.h"
#include "core/base/monotonic_clock.h"

namespace outrider {

// The way to a node, and how many sessions go it.
struct NodeLink {
  std::string name;     // HOST:PORT as the flag has it
  std::string address;  // HOST:PORT that the name resolved to
  // Whether there is a connection now; does not make one.
  std::function<bool()> is_connected;
  std::atomic<int> num_sessions = 0;
  // Those of them that have ended, of which it is only told: it must stay for
  // that, and they are no load, however long it takes to answer.
  std::atomic<int> num_ended = 0;
  // It has said that it shuts down, its name no longer has it, or another model
  // has answered than it was known as: its sessions should go, and no others
  // come, unless it is asked what it is and says so.
  std::atomic<bool> is_leaving = false;
  // Another node is ready that has the model of this one, and so can go on with
  // the texts of its sessions.
  std::atomic<bool> has_other = false;
  Pulse pulse = {};

  int load() const { return num_sessions - num_ended; }
};

// One drafter: what all sessions on it share. Sessions ask its breaker before
// each call. Thread-safe.
struct DrafterNode {
  static constexpr bool kIsNeeded = false;  // without one rounds are plain

  NodeLink link;
  std::unique_ptr<SharedDraftStub> stub = nullptr;
  std::unique_ptr<CacheStub> cache = nullptr;
  CircuitBreaker breaker = {};
  DraftLengthControls controls = {};
  SuspectPlaces suspects = {};

  void Returned() { breaker.Returned(); }
  bool is_doubtful() const {
    return !link.is_connected() || breaker.IsOpen(CircuitBreaker::Clock::now());
  }
};

// One verifier. Its breaker guards openings alone: a session that has begun
// only tells it what came of its calls. Thread-safe.
struct VerifierNode {
  using Clock = MonotonicClock;
  static constexpr bool kIsNeeded = true;

  NodeLink link;
  std::unique_ptr<SharedVerifyStub> stub = nullptr;
  std::unique_ptr<CacheStub> cache = nullptr;
  CircuitBreaker breaker = {};
  StepPace pace = {};
  MoveGate gate = {};
  std::atomic<Clock::time_point> out_until = Clock::time_point();

  // A session has given it up: others go elsewhere first, for a while.
  void PutOut(Clock::time_point now) {
    out_until = now + std::chrono::seconds(5);
  }
  void Returned() {
    breaker.Returned();
    gate.StartAnew();
    out_until = Clock::time_point();
  }
  bool is_doubtful() const {
    const Clock::time_point now = Clock::now();
    return !link.is_connected() || !breaker.WouldAllow(now) ||
           now < out_until.load();
  }
};

// A session's place on a node, which stays as long as somebody has one.
struct LeaveNode {
  template <typename NodeType>
  void operator()(NodeType* node) const {
    // The last touch: the pool may drop the node now.
    node->link.num_sessions.fetch_sub(1, std::memory_order_release);
  }
};
template <typename NodeType>
using Seat = std::unique_ptr<NodeType, LeaveNode>;

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_NODE_H_
