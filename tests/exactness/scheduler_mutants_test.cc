// SPDX-License-Identifier: Apache-2.0
// Mistakes of the scheduler and of who owns which block, each of which must be
// caught. Built with OUTRIDER_MUTANTS.
#include <string>
#include <variant>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/exactness/scoped_mutant.h"
#include "tests/exactness/two_sessions.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

constexpr int kLength = 2;
constexpr double kTolerance = 1e-12;

double DifferenceWith(Mutant mutant, const TwoSessionsConfig& config) {
  const ScopedMutant scoped(mutant);
  const ToyModel model(3, DrafterKind::kCorrelated);
  const TwoSessions sessions = EnumerateTwoSessions(config, model, kLength);
  return DifferenceFromPlain(sessions, config, model, kLength);
}

TEST(SchedulerMutantsTest, NoneIsExact) {
  EXPECT_LE(DifferenceWith(Mutant::kNone, {}), kTolerance);
  EXPECT_LE(DifferenceWith(Mutant::kNone, {.prompt_length = 40}), kTolerance);
}

TEST(SchedulerMutantsTest, RowsHandedToTheWrongSessionAreCaught) {
  EXPECT_GT(DifferenceWith(Mutant::kE1, {}), 1e-3);
}

// The accounts of the blocks, which every step checks, find it before the law.
TEST(SchedulerMutantsTest, ABlockFreedTooEarlyIsCaught) {
  EXPECT_DEATH(DifferenceWith(Mutant::kE2, {}), "check failed");
}

TEST(SchedulerMutantsTest, AChunkWhoseBoundaryIsOffByOneIsCaught) {
  EXPECT_GT(DifferenceWith(Mutant::kE3, {.prompt_length = 40}), 1e-3);
}

// The verifier's rows for a call of the session, or its miss.
using Outcome = std::variant<TokenSeq, Miss>;

// A session is preempted for an older one's round, and then comes back as if
// nothing had happened: what it gets instead of a miss.
VerifyReply ReplyAfterPreemption(Mutant mutant) {
  const ScopedMutant scoped(mutant);
  const auto node = MakeVerifyNode(
      {.table =
           [](absl::Span<const TokenId> context) {
             return std::vector<float>(2, static_cast<float>(context[0]));
           },
       .vocab_size = 2},
      {}, {.sessions = {.num_blocks = 6}});
  const auto run = [&](uint8_t name, uint64_t step, Incarnation incarnation,
                       int keep_length, int num_tokens) {
    const VerifyCall call = {
        .header = {.session = {.bytes = {name}},
                   .incarnation = incarnation,
                   .step = step,
                   .delta = {keep_length, TokenSeq(num_tokens, 1)}}};
    const auto reply = node->Run(call, ContentDigest(call));
    EXPECT_THAT(reply, IsOk());
    return *reply;
  };
  const Incarnation old = run(1, 1, {}, 0, 32).header.incarnation;
  const Incarnation young = run(2, 1, {}, 0, 32).header.incarnation;
  run(1, 2, old, 32, 48);
  EXPECT_EQ(node->sessions().num_preempted(), 1);
  // The older one ends and leaves its blocks.
  EXPECT_TRUE(node->Release(
      {.session = {.bytes = {1}}, .incarnation = old, .step = 3}));
  return run(2, 2, young, 32, 1);
}

TEST(SchedulerMutantsTest, APreemptedSessionMeetsAMiss) {
  const VerifyReply reply = ReplyAfterPreemption(Mutant::kNone);
  ASSERT_TRUE(std::holds_alternative<Miss>(reply.outcome));
  EXPECT_EQ(std::get<Miss>(reply.outcome).reason, MissReason::kLength);
  EXPECT_EQ(std::get<Miss>(reply.outcome).cached_length, 0);
}

TEST(SchedulerMutantsTest, APreemptedSessionThatKeepsItsLengthIsCaught) {
  const VerifyReply reply = ReplyAfterPreemption(Mutant::kE4);
  EXPECT_FALSE(std::holds_alternative<Miss>(reply.outcome));
}

}  // namespace
}  // namespace outrider::testing
