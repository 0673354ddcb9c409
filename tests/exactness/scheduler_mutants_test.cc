// SPDX-License-Identifier: Apache-2.0
// Mistakes of the scheduler and of who owns which block, each of which must be
// caught. Built with OUTRIDER_MUTANTS.
#include <string>
#include <variant>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/scoped_mutant.h"
#include "tests/exactness/two_sessions.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing::scheduler_mutants {
namespace {

constexpr int kLength = 2;

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

// Sessions of two salts, the second of which comes later.
int64_t ReusedOverSalts(Mutant mutant) {
  const ScopedMutant scoped(mutant);
  const ToyModel model(3, DrafterKind::kCorrelated);
  return EnumerateTwoSessions(
             {.prompt_length = 40, .is_second_late = true, .salts = {"a", "b"}},
             model, /*length=*/1)
      .num_reused;
}

TEST(SchedulerMutantsTest, ASaltThatIsIgnoredIsCaught) {
  EXPECT_EQ(ReusedOverSalts(Mutant::kNone), 0);
  EXPECT_GT(ReusedOverSalts(Mutant::kE6), 0);
}

// Two sessions share two blocks, and the second one is cut into the second of
// them, to go on with other tokens.
VerifyReply ReplyAfterACutIntoASharedBlock(Mutant mutant) {
  const ScopedMutant scoped(mutant);
  const auto node =
      MakeVerifyNode({.table =
                          [](absl::Span<const TokenId> /*context*/) {
                            return std::vector<float>(2, 0);
                          },
                      .vocab_size = 2});
  const auto run = [&](uint8_t name, uint64_t step, Incarnation incarnation,
                       CacheDelta delta) {
    const VerifyCall call = {.header = {.session = {.bytes = {name}},
                                        .incarnation = incarnation,
                                        .step = step,
                                        .delta = std::move(delta),
                                        .cache_salt = "s"}};
    const auto reply = node->Run(call, ContentDigest(call));
    EXPECT_THAT(reply, IsOk());
    return *reply;
  };
  run(1, 1, {}, {0, TokenSeq(40, 1)});
  const VerifyReply opened = run(2, 1, {}, {0, TokenSeq(40, 1)});
  EXPECT_EQ(opened.header.reused_length, 32);
  const VerifyReply cut =
      run(2, 2, opened.header.incarnation, {20, TokenSeq(12, 0)});
  EXPECT_EQ(node->Cached({.bytes = {1}}), TokenSeq(40, 1));
  return cut;
}

TEST(SchedulerMutantsTest, ACutIntoASharedBlockMeetsAMiss) {
  const VerifyReply reply = ReplyAfterACutIntoASharedBlock(Mutant::kNone);
  ASSERT_TRUE(std::holds_alternative<Miss>(reply.outcome));
  EXPECT_EQ(std::get<Miss>(reply.outcome).reason, MissReason::kLength);
  EXPECT_EQ(std::get<Miss>(reply.outcome).cached_length, 16);
}

TEST(SchedulerMutantsTest, ASharedBlockWrittenToIsCaught) {
  EXPECT_DEATH(ReplyAfterACutIntoASharedBlock(Mutant::kE5), "check failed");
}

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
  EXPECT_DEATH(ReplyAfterPreemption(Mutant::kE4), "check failed");
}

}  // namespace
}  // namespace outrider::testing::scheduler_mutants
