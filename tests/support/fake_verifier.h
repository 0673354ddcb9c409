// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_
#define OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/pool/shared_stubs.h"
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
  bool is_hung = false;    // steps are, while it says what it is
  bool is_silent = false;  // it answers nothing at all
  bool is_old = false;     // it knows no place for suspects
  std::string weights_hash = "weights";
  bool is_draining = false;
  int num_lives = 1;
  int num_breaks = 0;  // of its connections
  int num_in_flight = 0;
  std::map<SessionId, Incarnation> sessions = {};
  // Each of these takes it down, from this step on.
  const std::map<SessionId, uint64_t>* poison = nullptr;
  int num_deaths = 0;
  std::unique_ptr<SuspectPlace> suspects = std::make_unique<SuspectPlace>();

  void Die() {
    is_up = false;
    ++num_deaths;
    ++num_lives;
    ++num_breaks;
    sessions.clear();
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
  // What the process, which is there, answers.
  absl::StatusOr<VerifyReply> Answer(const RequestHeader& header);

  EventLoop& loop_;
  FakeProcess& process_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_FAKE_VERIFIER_H_
