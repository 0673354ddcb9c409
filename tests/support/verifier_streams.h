// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_VERIFIER_STREAMS_H_
#define OUTRIDER_TESTS_SUPPORT_VERIFIER_STREAMS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/nodes/session_verifier.h"
#include "core/sampling/sampling_params.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/fake_pool.h"
#include "tests/support/fake_verifier.h"

namespace outrider::testing {

// Streams at processes that a test lets die, hang and drain, in virtual time:
// each takes step after step, as a round's client does it.
class VerifierStreams : public ::testing::Test {
 protected:
  struct Stream {
    std::unique_ptr<SessionVerifier> verifier;
    SessionId id;
    int num_steps = 0;                     // answered
    int num_drafts = 0;                    // of the last step
    int num_retries = 0;                   // of all steps
    std::optional<absl::Status> end = {};  // none: it runs
  };

  ~VerifierStreams() override;

  void Start(size_t num_verifiers, size_t num_streams);
  // It takes down whoever computes a step of it from that one on.
  Stream& AddStream(std::optional<uint64_t> poison_from = {});
  template <typename Condition>
  void RunUntil(Condition condition) {
    while (!condition() && loop_.elapsed() < std::chrono::minutes(10)) {
      ASSERT_TRUE(loop_.RunOne());
    }
    ASSERT_TRUE(condition());
  }
  void RunToEnd() {
    RunUntil([&] {
      return std::all_of(streams_.begin(), streams_.end(),
                         [](const auto& one) { return one->end.has_value(); });
    });
  }
  bool HaveAllSteps(int num_steps) const {
    return std::all_of(streams_.begin(), streams_.end(), [&](const auto& one) {
      return one->num_steps >= num_steps;
    });
  }
  // A platform that starts again what has died.
  void Restart(std::chrono::milliseconds after);
  // The process that has a step.
  FakeProcess* InFlight();
  FakeProcess& ProcessAt(const std::string& address);
  int64_t NumMoves(MoveReason reason);

  EventLoop loop_;
  int num_steps_ = 100;
  std::vector<TokenId> prompt_ = {1, 2};
  SamplingParams sampling_;
  int num_drafts_ = 0;  // of a step, where its verifier takes so many
  SessionUse use_ = {.max_draft_tokens = 4};
  std::map<SessionId, uint64_t> poison_;
  std::vector<FakeProcess> processes_;
  std::set<FakeProcess*> restarting_;
  Cancellation cancellation_;
  int num_coordinators_ = 1;
  std::vector<std::unique_ptr<FakePool>> pools_;  // one of each
  FakePool* pool_ = nullptr;                      // the first
  std::vector<std::unique_ptr<Stream>> streams_;

 private:
  Task<void> Run(Stream& stream);
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_VERIFIER_STREAMS_H_
