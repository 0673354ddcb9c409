// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_
#define OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/nodes/shared_stubs.h"
#include "core/base/session_id.h"
#include "core/session/suspect_place.h"
#include "tests/support/event_loop.h"

namespace outrider::testing {

// What a node takes over a step.
inline constexpr std::chrono::milliseconds kFakeStep(10);

// A process, and the connection to it.
struct FakeProcess {
  bool is_up = true;
  std::chrono::milliseconds step = kFakeStep;
  // Texts take so long, and take turns: all of them end with the last.
  std::chrono::microseconds per_token{0};
  EventLoop::Clock::time_point texts_end = {};
  int num_texts = 0;
  double own_share = 1;  // that a call's rows have of its passes
  std::optional<double> next_reprefill_in = {};  // told to those that move here
  int num_moved = 0;
  absl::Status refusal = {};  // of every step, where it is one
  int num_refused = 0;        // steps by that, or as it is full
  absl::Status unsaid = {};   // it answers who asks what it is, where it is one
  int num_failing = 0;        // steps from here on; it forgets their sessions
  bool is_full = false;       // what has nothing there is to come later
  size_t longest_text = SIZE_MAX;  // and so is what has more, and nothing there
  bool preempts = false;           // what has something there loses it
  bool is_hung = false;            // steps are, while it says what it is
  bool is_silent = false;          // it answers nothing at all
  bool is_old = false;             // it knows no place for suspects
  bool is_starved = false;         // and then nobody is told whether it is free
  std::string weights_hash = "weights";
  // What it says of itself beside them.
  NodeDescription description = {.vocab_size = 10,
                                 .context_length = 1000,
                                 .max_draft_tokens = 4,
                                 .reply_formats = {ReplyFormat::kFull}};
  int num_described = 0;  // how often it has said it
  bool is_draining = false;
  int num_lives = 1, num_deaths = 0;
  int num_breaks = 0;  // of its connections
  int num_in_flight = 0;
  std::map<SessionId, Incarnation> sessions = {};
  std::map<SessionId, uint64_t> released = {};  // with this step
  int num_stale = 0;  // openings that came after their own release
  // Each of these takes it down, from this step on.
  const std::map<SessionId, uint64_t>* poison = nullptr;
  std::unique_ptr<SuspectPlace> suspects = std::make_unique<SuspectPlace>();

  void Die() {
    is_up = false;
    ++num_deaths;
    ++num_lives;
    ++num_breaks;
    sessions.clear();
    released.clear();
    suspects = std::make_unique<SuspectPlace>();
  }
};

class FakeStub final : public SharedVerifyStub {
 public:
  FakeStub(EventLoop& loop, FakeProcess& process)
      : loop_(loop), process_(process) {}

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           std::chrono::milliseconds timeout,
                                           Cancellation& cancellation) override;
  std::chrono::milliseconds TimeoutOf(const VerifyCall&) const override {
    return std::chrono::seconds(30);
  }
  Task<absl::StatusOr<bool>> Isolate(const SessionId& session,
                                     std::chrono::milliseconds timeout,
                                     Cancellation& cancellation) override;
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) override;

 private:
  Task<absl::Status> TakeIn(size_t num_tokens,
                            std::chrono::milliseconds timeout,
                            Cancellation& cancellation);
  // What the process, which is there, answers.
  absl::StatusOr<VerifyReply> Answer(const RequestHeader& header);

  EventLoop& loop_;
  FakeProcess& process_;
};

// What of a process gives memory back.
class FakeCache final : public CacheStub {
 public:
  explicit FakeCache(FakeProcess& process) : process_(process) {}
  Task<void> Release(RequestHeader header, Cancellation&) override {
    process_.suspects->Released(header.session);
    process_.sessions.erase(header.session);
    process_.released[header.session] = header.step;
    co_return;
  }

 private:
  FakeProcess& process_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_
