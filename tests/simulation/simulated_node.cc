// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulated_node.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "tests/support/in_process_stubs.h"

namespace outrider::testing {

template <typename Core>
SimulatedNode<Core>::SimulatedNode(EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {
  Start();
}

template <typename Core>
void SimulatedNode<Core>::Deliver(const Call& call, Done done) {
  if (is_down()) return done(absl::UnavailableError("nobody listens"));
  if (loop_.now() < paused_until_) {
    waiting_.push_back([this, call, done] { Deliver(call, done); });
    return;
  }
  if (loop_.now() < refuses_until_) {
    return done(WithRetryDelay(absl::ResourceExhaustedError("no room"),
                               std::chrono::milliseconds(50)));
  }
  const uint64_t number = ++num_calls_;
  const RequestHeader& header = call.header;
  calls_[number] = {std::move(done), suspects_->Began(header.session)};
  Call taken = call;
  taken.header = door_->In(header, core_->sessions());
  if (options_.protocol.truncates_apart && !header.incarnation.is_none()) {
    if (!FitsApart(header, taken.header.delta)) {
      const auto length = core_->Logged(header.session).size();
      Reply miss = {.outcome =
                        Miss{MissReason::kLength, static_cast<int>(length)}};
      miss.header.session = header.session;
      miss.header.incarnation = header.incarnation;
      return Answer(number, header, std::move(miss));
    }
  }
  Cover(taken);
  core_->Submit(taken, ContentDigest(taken), loop_.now(),
                [this, number, call](absl::StatusOr<Reply> reply) {
                  if (reply.ok() && options_.computed) {
                    options_.computed(call, *reply, is_other_);
                  }
                  Answer(number, call.header, std::move(reply));
                });
  Pump();
}

template <typename Core>
void SimulatedNode<Core>::Cover(const Call& taken) {
  using Kind = NodeCoverage::Message;
  const RequestHeader& header = taken.header;
  const NodeSession* session = core_->sessions().Find(header.session);
  Kind message = NodeCoverage::KindOf(header, ContentDigest(taken), session);
  if (session == nullptr && message == Kind::kOpening) {
    const auto released = released_.find(header.session);
    if (released != released_.end() && header.step <= released->second) {
      message = Kind::kReleasedOpening;
    }
  }
  coverage_.Saw(session, message);
}

template <typename Core>
void SimulatedNode<Core>::Describe(
    std::function<void(absl::StatusOr<NodeDescription>)> done) {
  if (is_down()) return done(absl::UnavailableError("nobody listens"));
  if (loop_.now() < paused_until_) {
    waiting_.push_back([this, done] { Describe(done); });
    return;
  }
  if (is_draining()) return done(NodeDrainsError());
  done(Description());
}

template <typename Core>
NodeDescription SimulatedNode<Core>::Description() const {
  NodeDescription description = options_.describe(life_);
  if (is_other_) description.weights_hash = "others";
  return description;
}

template <typename Core>
void SimulatedNode<Core>::Isolate(
    const SessionId& session, std::function<void(absl::StatusOr<bool>)> done) {
  if (is_down()) return done(absl::UnavailableError("nobody listens"));
  if (loop_.now() < paused_until_) {
    waiting_.push_back([this, session, done] { Isolate(session, done); });
    return;
  }
  done(suspects_->Enter(session, loop_.now()));
}

template <typename Core>
void SimulatedNode<Core>::Drain(Clock::duration time) {
  if (is_draining() || is_down()) return;
  draining_until_ = loop_.now() + time;
  loop_.After(time, [this, life = life_] {
    if (life == life_) Crash(std::chrono::milliseconds(50));
  });
}

template <typename Core>
void SimulatedNode<Core>::Replace(Clock::duration time) {
  if (is_other_) return;
  // Who asks once a second what it is may not see that it was away.
  static constexpr std::chrono::milliseconds kLoading(200);
  is_other_ = true;
  Crash(kLoading);
  loop_.After(kLoading + time, [this] {
    is_other_ = false;
    Crash(kLoading);
  });
}

template <typename Core>
bool SimulatedNode<Core>::FitsApart(const RequestHeader& header,
                                    CacheDelta& delta) const {
  const TokenSeq cached = core_->Logged(header.session);
  const int length = static_cast<int>(cached.size());
  const int expected =
      delta.keep_length + static_cast<int>(delta.append_tokens.size());
  if (options_.protocol.expects_length && length == expected) {
    // It takes the last one that it has for the last one that is sent.
    delta = {.keep_length = length - 1, .append_tokens = {cached.back()}};
    return true;
  }
  if (options_.protocol.expects_length && length != delta.keep_length) {
    return false;
  }
  delta.keep_length = length;
  return true;
}

template <typename Core>
void SimulatedNode<Core>::Release(const RequestHeader& header) {
  if (is_down()) return;
  suspects_->Released(header.session);
  const RequestHeader taken = door_->In(header, core_->sessions());
  const NodeSession* session = core_->sessions().Find(header.session);
  coverage_.Saw(session, NodeCoverage::KindOfRelease(taken, session));
  if (taken.incarnation.is_none()) {
    uint64_t& step = released_[header.session];
    step = std::max(step, taken.step);
  }
  core_->Release(taken);
}

template <typename Core>
void SimulatedNode<Core>::Truncate(const RequestHeader& header, int length,
                                   int num_removed) {
  if (is_down()) return;
  const int cached = static_cast<int>(core_->Logged(header.session).size());
  core_->Truncate(door_->In(header, core_->sessions()),
                  options_.protocol.truncates_by_number
                      ? std::max(0, cached - num_removed)
                      : length);
}

template <typename Core>
void SimulatedNode<Core>::Crash(Clock::duration down) {
  down_until_ = std::max(down_until_, loop_.now() + down);
  draining_until_ = {};
  ++life_;
  waiting_.clear();
  const auto broken = std::exchange(calls_, {});
  Start();
  for (const auto& [number, call] : broken) {
    call.first(absl::UnavailableError("the connection broke"));
  }
}

template <typename Core>
void SimulatedNode<Core>::Pause(Clock::duration time) {
  paused_until_ = std::max(paused_until_, loop_.now() + time);
  loop_.After(time, [this] {
    for (const auto& deliver : std::exchange(waiting_, {})) deliver();
    Pump();
  });
}

template <typename Core>
void SimulatedNode<Core>::Start() {
  if (core_ != nullptr) num_preempted_before_ = num_preempted();
  is_passing_ = false;
  core_ = options_.start(Description(), is_broken_);
  door_ = std::make_unique<WeakDoor>(options_.protocol);
  suspects_ = std::make_unique<SuspectPlace>();
  released_.clear();
}

template <typename Core>
void SimulatedNode<Core>::Answer(uint64_t number, const RequestHeader& request,
                                 absl::StatusOr<Reply> reply) {
  if (reply.ok() && options_.kills && options_.kills(request)) {
    // Not here, in the midst of what would be gone.
    loop_.After({}, [this, life = life_] {
      if (life == life_) Crash(std::chrono::milliseconds(300));
    });
    return;
  }
  const auto call = calls_.extract(number);
  const auto& [done, is_suspect] = call.mapped();
  if (is_suspect) suspects_->Ended();
  if (reply.ok()) {
    if (request.incarnation.is_none()) reply->model = Description().identity();
    door_->Out(request, reply->header);
    reply->header.is_draining = is_draining();
  }
  done(std::move(reply));
}

template <typename Core>
void SimulatedNode<Core>::Pump() {
  if (is_passing_ || loop_.now() < paused_until_) return;
  const uint64_t life = life_;
  const int num_rows = core_->BeginPass(loop_.now());
  // A miss or a refusal is answered without one.
  if (num_rows == 0) core_->RunToEnd(loop_.now());
  if (num_rows > 0) {
    is_passing_ = true;
    loop_.After(std::chrono::microseconds(500 + 20 * num_rows),
                [this, life] { EndPass(life); });
  } else if (const auto hold_end = core_->hold_end(); hold_end.has_value()) {
    loop_.After(*hold_end - loop_.now(), [this, life] {
      if (life == life_) Pump();
    });
  }
}

template <typename Core>
void SimulatedNode<Core>::EndPass(uint64_t life) {
  if (life != life_) return;
  is_passing_ = false;
  is_broken_ = std::exchange(breaks_next_pass_, false);
  core_->EndPass(loop_.now());
  is_broken_ = false;
  Pump();
}

template class SimulatedNode<VerifyNode>;
template class SimulatedNode<DraftNode>;

}  // namespace outrider::testing
