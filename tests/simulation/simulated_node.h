// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SIMULATED_NODE_H_
#define OUTRIDER_TESTS_SIMULATION_SIMULATED_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/session/suspect_place.h"
#include "core/wire/node_description.h"
#include "tests/simulation/node_coverage.h"
#include "tests/simulation/weak_protocol.h"
#include "tests/support/event_loop.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// A node's process: production's engine, scheduler and sessions, whose passes
// take time, and what happens to processes.
template <typename Core>
class SimulatedNode {
 public:
  using Call = typename Core::Call;
  using Reply = typename Core::Reply;
  using Done = std::function<void(absl::StatusOr<Reply>)>;
  using Clock = EventLoop::Clock;

  struct Options {
    // Begins a life as this, with numbers that are none while it is broken.
    std::function<std::unique_ptr<Core>(const NodeDescription&, const bool&)>
        start = {};
    // What it is, after so many lives.
    std::function<NodeDescription(uint64_t num_lives)> describe = {};
    // Sees what is computed, also where nobody hears of it, and by which model.
    std::function<void(const Call&, const Reply&, bool is_other)> computed = {};
    // A step that takes the process down when it is computed.
    std::function<bool(const RequestHeader&)> kills = {};
    WeakProtocol protocol = {};
  };

  SimulatedNode(EventLoop& loop, Options options);

  // `done` gets the answer, or that the connection broke; or nothing.
  void Deliver(const Call& call, Done done);
  void Describe(std::function<void(absl::StatusOr<NodeDescription>)> done);
  void Isolate(const SessionId& session,
               std::function<void(absl::StatusOr<bool>)> done);
  void Release(const RequestHeader& header);
  // Some protocols cut by a call of its own: to a length, or by a number.
  void Truncate(const RequestHeader& header, int length, int num_removed);

  void Crash(Clock::duration down);  // loses all, and is back after it
  void Pause(Clock::duration time);  // then goes on with all that came
  void Refuse(Clock::duration time) { refuses_until_ = loop_.now() + time; }
  void Drain(Clock::duration time);  // says so, and is another process then
  void Lie(Clock::duration time) { lies_until_ = loop_.now() + time; }
  void Replace(Clock::duration time);  // is another model for so long
  // Acts as if every lease had run out.
  void Evict() { core_->Expire(loop_.now() + std::chrono::hours(1)); }
  void BreakNextPass() { breaks_next_pass_ = true; }
  // Drops what has not been used for a lease; about once a second.
  void Expire() { core_->Expire(loop_.now()); }

  const Core& core() const { return *core_; }
  const NodeCoverage& coverage() const { return coverage_; }
  bool is_down() const { return loop_.now() < down_until_; }
  bool is_other() const { return is_other_; }
  bool is_lying() const { return loop_.now() < lies_until_; }
  bool is_draining() const { return loop_.now() < draining_until_; }
  uint64_t num_lives() const { return life_; }  // that are over
  int num_preempted() const {
    return num_preempted_before_ + core_->sessions().num_preempted();
  }

 private:
  void Start();
  void Cover(const Call& taken);
  // What it is now.
  NodeDescription Description() const;
  // Where truncation is a call of its own: makes the delta follow what is
  // cached. False: that has another length than the call expects.
  bool FitsApart(const RequestHeader& header, CacheDelta& delta) const;
  void Answer(uint64_t number, const RequestHeader& request,
              absl::StatusOr<Reply> reply);
  // Begins the next pass, where it may.
  void Pump();
  void EndPass(uint64_t life);

  EventLoop& loop_;
  const Options options_;
  bool is_broken_ = false;
  bool is_other_ = false;
  bool breaks_next_pass_ = false;
  bool is_passing_ = false;
  std::unique_ptr<Core> core_;
  std::unique_ptr<WeakDoor> door_;
  std::unique_ptr<SuspectPlace> suspects_;
  NodeCoverage coverage_;
  std::map<SessionId, uint64_t> released_;  // in this life, before it was open
  uint64_t life_ = 0;
  uint64_t num_calls_ = 0;
  std::map<uint64_t, std::pair<Done, bool>> calls_;  // and if of a suspect
  std::vector<std::function<void()>> waiting_;  // came while it stood still
  Clock::time_point down_until_;
  Clock::time_point paused_until_;
  Clock::time_point refuses_until_;
  Clock::time_point draining_until_;
  Clock::time_point lies_until_;
  int num_preempted_before_ = 0;
};

extern template class SimulatedNode<VerifyNode>;
extern template class SimulatedNode<DraftNode>;

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATED_NODE_H_
