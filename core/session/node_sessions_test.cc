// SPDX-License-Identifier: Apache-2.0
// The node's table of the protocol, row by row.
#include "core/session/node_sessions.h"

#include <chrono>
#include <optional>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using Clock = NodeSessions::Clock;
using Outcome = absl::StatusOr<NodeSessions::Outcome>;
using std::chrono::seconds;

constexpr uint64_t kDigest = 77;
const Clock::time_point kStart = {};

SessionId Id(uint8_t name) { return {.bytes = {name}}; }

std::optional<MissReason> ReasonOf(const Outcome& outcome) {
  if (!outcome.ok() || !std::holds_alternative<Miss>(*outcome)) return {};
  return std::get<Miss>(*outcome).reason;
}
bool IsAdmitted(const Outcome& outcome) {
  return outcome.ok() && std::holds_alternative<NodeSession*>(*outcome);
}
// What a round does with the session that it was given.
void RunRound(NodeSessions& sessions, const Outcome& outcome,
              const TokenSeq& tokens, Clock::time_point end) {
  NodeSession& session = *std::get<NodeSession*>(*outcome);
  EXPECT_TRUE(sessions.IsConsistent());
  sessions.Extended(session, tokens);
  EXPECT_TRUE(sessions.IsConsistent());
  sessions.EndRound(session, end);
  EXPECT_TRUE(sessions.IsConsistent());
}

// A table with one live session of five tokens, last seen at step 10.
class NodeSessionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MustRun(Open(10, {1, 2, 3, 4, 5}));
    incarnation_ = table_.Find(Id(1))->incarnation;
  }

  static RequestHeader Open(uint64_t step, TokenSeq tokens,
                            SessionId session = Id(1)) {
    return {.session = session,
            .step = step,
            .delta = {.append_tokens = std::move(tokens)},
            .prefix_hash = 0};
  }
  RequestHeader Next(uint64_t step, int keep_length,
                     TokenSeq tokens = {6}) const {
    return {.session = Id(1),
            .incarnation = incarnation_,
            .step = step,
            .delta = {keep_length, std::move(tokens)}};
  }

  // Admits what is to be refused, or to miss.
  Outcome Admit(const RequestHeader& header, uint64_t digest = kDigest) {
    return table_.Admit(header, digest, /*num_draft_tokens=*/0, kStart);
  }
  void MustRun(const RequestHeader& header, uint64_t digest = kDigest) {
    const Outcome outcome = Admit(header, digest);
    ASSERT_TRUE(IsAdmitted(outcome));
    RunRound(table_, outcome, header.delta.append_tokens, kStart);
  }
  absl::Span<const TokenId> Tokens() const {
    return table_.Find(Id(1))->log.tokens();
  }

  NodeSessions table_{{.num_blocks = 100}};
  Incarnation incarnation_;
};

TEST_F(NodeSessionsTest, AnUnknownIncarnationIsAMiss) {
  RequestHeader header = Next(11, 5);
  header.incarnation = Id(200);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kUnknownIncarnation);
  header = Next(11, 5);
  header.session = Id(2);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kUnknownIncarnation);
  // Neither had an effect.
  MustRun(Next(11, 5));
}

TEST_F(NodeSessionsTest, AnOpenWithALaterStepMintsAndDropsTheOldState) {
  MustRun(Open(11, {9}));
  EXPECT_FALSE(table_.Find(Id(1))->incarnation.is_none());
  EXPECT_NE(table_.Find(Id(1))->incarnation, incarnation_);
  EXPECT_THAT(Tokens(), ElementsAre(9));
  EXPECT_EQ(ReasonOf(Admit(Next(12, 1))), MissReason::kUnknownIncarnation);
}

TEST_F(NodeSessionsTest, TheSameOpenAgainKeepsItsIncarnation) {
  MustRun(Open(10, {1, 2, 3, 4, 5}));
  EXPECT_EQ(table_.Find(Id(1))->incarnation, incarnation_);
  EXPECT_EQ(Tokens().size(), 5u);
}

TEST_F(NodeSessionsTest, AnyOtherOpenIsStaleAndHasNoEffect) {
  EXPECT_EQ(ReasonOf(Admit(Open(9, {1}))), MissReason::kStale);
  EXPECT_EQ(ReasonOf(Admit(Open(10, {1}), kDigest + 1)), MissReason::kStale);
  MustRun(Next(11, 5));
  // The step that opened is no longer the last one.
  EXPECT_EQ(ReasonOf(Admit(Open(10, {1, 2, 3, 4, 5}))), MissReason::kStale);
  // The last step, but not the one that opened.
  EXPECT_EQ(ReasonOf(Admit(Open(11, {6}))), MissReason::kStale);
  EXPECT_THAT(Tokens(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(NodeSessionsTest, AnEarlierStepIsStaleAndHasNoEffect) {
  MustRun(Next(12, 5));
  EXPECT_EQ(ReasonOf(Admit(Next(11, 2))), MissReason::kStale);
  EXPECT_EQ(static_cast<int>(Tokens().size()), 6);
}

TEST_F(NodeSessionsTest, TheSameStepAgainSetsTheLengthAndDoesNotAppendTwice) {
  MustRun(Next(11, 4, {8, 9}));
  MustRun(Next(11, 4, {8, 9}));
  EXPECT_THAT(Tokens(), ElementsAre(1, 2, 3, 4, 8, 9));
}

TEST_F(NodeSessionsTest, OneStepWithTwoContentsIsMalformed) {
  MustRun(Next(11, 4, {8}));
  EXPECT_THAT(Admit(Next(11, 4, {9}), kDigest + 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(NodeSessionsTest, ALengthBeyondTheCacheIsAMissThatSaysHowMuchThereIs) {
  const Outcome outcome = Admit(Next(11, 6));
  ASSERT_EQ(ReasonOf(outcome), MissReason::kLength);
  EXPECT_EQ(std::get<Miss>(*outcome).cached_length, 5);
}

TEST_F(NodeSessionsTest, AnotherPrefixOfTheRightLengthIsAMiss) {
  TokenLog ours(Id(1));
  ours.Append({1, 2, 30});
  RequestHeader header = Next(11, 3);
  header.prefix_hash = ours.PrefixHash(3);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kPrefix);
  header.delta.keep_length = 2;
  header.prefix_hash = ours.PrefixHash(2);
  MustRun(header);
}

TEST_F(NodeSessionsTest, AMissDoesNotUseUpItsStep) {
  EXPECT_EQ(ReasonOf(Admit(Next(11, 6))), MissReason::kLength);
  MustRun(Next(11, 5), kDigest + 1);
}

TEST_F(NodeSessionsTest, AnOpenThatKeepsTokensIsMalformed) {
  RequestHeader header = Open(11, {1});
  header.delta.keep_length = 1;
  EXPECT_THAT(Admit(header), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(NodeSessionsTest, AdvisoryCutsObeyStepAndIncarnation) {
  EXPECT_FALSE(table_.Truncate(Next(9, 0), 2));
  RequestHeader stranger = Next(11, 0);
  stranger.incarnation = Id(200);
  EXPECT_FALSE(table_.Truncate(stranger, 2));
  EXPECT_FALSE(table_.Release(stranger));
  EXPECT_FALSE(table_.Release(Next(9, 0)));
  EXPECT_EQ(static_cast<int>(Tokens().size()), 5);

  EXPECT_TRUE(table_.Truncate(Next(11, 0), 2));
  EXPECT_EQ(static_cast<int>(Tokens().size()), 2);
  EXPECT_TRUE(table_.Truncate(Next(11, 0), 4));  // never longer
  EXPECT_EQ(static_cast<int>(Tokens().size()), 2);
  EXPECT_TRUE(table_.Release(Next(11, 0)));
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_EQ(table_.num_cached_tokens(), 0);
  EXPECT_FALSE(table_.Release(Next(12, 0)));
}

// Whoever cancels an opening before its answer does not know the incarnation.
TEST_F(NodeSessionsTest, AReleaseWithoutIncarnationReleasesWhatWasOpened) {
  RequestHeader release = {.session = Id(1), .step = 9};
  EXPECT_FALSE(table_.Release(release));  // of an opening before this one
  EXPECT_EQ(table_.num_sessions(), 1);
  release.step = 10;
  EXPECT_TRUE(table_.Release(release));
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_FALSE(table_.Release(release));
}

TEST_F(NodeSessionsTest, AnOpeningThatArrivesAfterItsReleaseIsStale) {
  const RequestHeader release = {.session = Id(2), .step = 5};
  EXPECT_FALSE(table_.Release(release));
  EXPECT_EQ(ReasonOf(Admit(Open(4, {1}, Id(2)))), MissReason::kStale);
  EXPECT_EQ(ReasonOf(Admit(Open(5, {1}, Id(2)))), MissReason::kStale);
  EXPECT_EQ(table_.num_sessions(), 1);
  MustRun(Open(6, {1}, Id(2)));
  MustRun(Open(1, {1}, Id(3)));
}

TEST_F(NodeSessionsTest, ReleaseWhileACallIsAtWorkWaitsForItsEnd) {
  const Outcome outcome = Admit(Next(11, 5));
  ASSERT_TRUE(IsAdmitted(outcome));
  EXPECT_FALSE(table_.Truncate(Next(12, 0), 2));
  EXPECT_TRUE(table_.Release(Next(12, 0)));
  EXPECT_EQ(table_.num_sessions(), 1);
  table_.EndRound(*std::get<NodeSession*>(*outcome), kStart);
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_TRUE(table_.IsConsistent());
}

// A node of ten blocks, and sessions that fill whole ones.
class NodeBlocksTest : public ::testing::Test {
 protected:
  static RequestHeader Header(uint8_t name, uint64_t step, int num_blocks,
                              Incarnation incarnation = {}, int keep = 0) {
    return {.session = Id(name),
            .incarnation = incarnation,
            .step = step,
            .delta = {keep * kKvBlockLength,
                      TokenSeq(num_blocks * kKvBlockLength, 0)}};
  }
  Outcome Open(uint8_t name, int num_blocks, seconds at = {}) {
    const RequestHeader header = Header(name, 1, num_blocks);
    Outcome outcome = node_.Admit(header, kDigest, 0, kStart + at);
    if (IsAdmitted(outcome)) {
      RunRound(node_, outcome, header.delta.append_tokens, kStart + at);
    }
    return outcome;
  }
  // A further round of a session that is there.
  RequestHeader NextRound(uint8_t name, int num_blocks) const {
    const NodeSession& session = *node_.Find(Id(name));
    return Header(name, session.last_step + 1, num_blocks, session.incarnation,
                  session.log.length() / kKvBlockLength);
  }
  Outcome Grow(uint8_t name, int num_blocks, seconds at = {}) {
    const RequestHeader header = NextRound(name, num_blocks);
    Outcome outcome = node_.Admit(header, kDigest, 0, kStart + at);
    if (IsAdmitted(outcome)) {
      RunRound(node_, outcome, header.delta.append_tokens, kStart + at);
    }
    return outcome;
  }
  void MustOpen(uint8_t name, int num_blocks, seconds at = {}) {
    EXPECT_TRUE(IsAdmitted(Open(name, num_blocks, at)));
  }
  void MustGrow(uint8_t name, int num_blocks, seconds at) {
    EXPECT_TRUE(IsAdmitted(Grow(name, num_blocks, at)));
  }
  int NumBlocks(uint8_t name) const {
    const NodeSession* session = node_.Find(Id(name));
    return session == nullptr ? -1 : static_cast<int>(session->blocks.size());
  }

  NodeSessions node_{{.num_blocks = 10, .max_sessions = 4}};
};

void ExpectTryLater(const Outcome& outcome) {
  ASSERT_THAT(outcome.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  const auto delay = RetryDelayOf(outcome.status());
  ASSERT_TRUE(delay.has_value());
  EXPECT_GE(delay->count(), 50);
  EXPECT_LE(delay->count(), 1000);
}

TEST_F(NodeBlocksTest, ARoundReservesItsDraftsAndGivesBackWhatItDidNotUse) {
  const RequestHeader header = Header(1, 1, 2);
  const Outcome outcome =
      node_.Admit(header, kDigest, /*num_draft_tokens=*/17, kStart);
  ASSERT_TRUE(IsAdmitted(outcome));
  EXPECT_EQ(NumBlocks(1), 4);
  EXPECT_EQ(node_.blocks().num_free(), 6);
  RunRound(node_, outcome, header.delta.append_tokens, kStart);
  EXPECT_EQ(NumBlocks(1), 2);
  EXPECT_EQ(node_.blocks().num_free(), 8);
}

TEST_F(NodeBlocksTest, ACutGivesItsBlocksBackAtOnce) {
  MustOpen(1, 5);
  const NodeSession& session = *node_.Find(Id(1));
  RequestHeader cut = {
      .session = Id(1), .incarnation = session.incarnation, .step = 2};
  EXPECT_TRUE(node_.Truncate(cut, kKvBlockLength + 1));
  EXPECT_EQ(NumBlocks(1), 2);
  EXPECT_TRUE(node_.Truncate(cut, 0));
  EXPECT_EQ(node_.blocks().num_free(), 10);
  EXPECT_EQ(node_.num_sessions(), 1);
}

TEST_F(NodeBlocksTest, ALiveSessionIsNeverEvictedForANewcomer) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  ExpectTryLater(Open(3, 3, seconds(29)));
  EXPECT_EQ(NumBlocks(1), 4);
  EXPECT_EQ(NumBlocks(2), 4);
  EXPECT_EQ(NumBlocks(3), -1);
}

TEST_F(NodeBlocksTest, AnOpeningLeavesTheOthersABlockEach) {
  MustOpen(1, 4);
  MustOpen(2, 3);
  ExpectTryLater(Open(3, 2));
  EXPECT_TRUE(IsAdmitted(Open(3, 1)));
}

TEST_F(NodeBlocksTest, ExpiredSessionsMakeRoomTheLongestIdleFirst) {
  MustOpen(1, 3, seconds(0));
  MustOpen(2, 3, seconds(1));
  MustGrow(1, 1, seconds(2));  // used again: the second one is the oldest now
  EXPECT_TRUE(IsAdmitted(Open(3, 3, seconds(100))));
  EXPECT_EQ(NumBlocks(2), -1);
  EXPECT_EQ(NumBlocks(1), 4);
}

TEST_F(NodeBlocksTest, OpeningsBeyondTheMostSessionsAreRefused) {
  for (uint8_t name = 1; name <= 4; ++name) MustOpen(name, 1);
  ExpectTryLater(Open(5, 1));
  EXPECT_TRUE(IsAdmitted(Open(5, 1, seconds(31))));
}

TEST_F(NodeBlocksTest, ASessionThatCanNeverFitIsToldSo) {
  MustOpen(1, 2);
  const Outcome outcome = Open(2, 11);
  EXPECT_THAT(outcome.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(RetryDelayOf(outcome.status()).has_value());
  EXPECT_EQ(NumBlocks(1), 2);
}

TEST_F(NodeBlocksTest, TheYoungestIsPreemptedForALiveSessionsRound) {
  MustOpen(1, 3);
  MustOpen(2, 2);
  MustOpen(3, 2);
  EXPECT_TRUE(IsAdmitted(Grow(1, 4)));
  EXPECT_EQ(NumBlocks(1), 7);
  EXPECT_EQ(NumBlocks(2), 2);
  EXPECT_EQ(NumBlocks(3), 0);
  EXPECT_EQ(node_.num_preempted(), 1);
  // Its next call meets a miss, and it is rebuilt where there is room.
  RequestHeader header = NextRound(3, 1);
  header.delta.keep_length = 2 * kKvBlockLength;
  EXPECT_EQ(ReasonOf(node_.Admit(header, kDigest, 0, kStart)),
            MissReason::kLength);
  header.delta.keep_length = 0;
  EXPECT_TRUE(IsAdmitted(node_.Admit(header, kDigest, 0, kStart)));
}

TEST_F(NodeBlocksTest, TheYoungestItselfIsRefusedAndKeepsWhatItHas) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const RequestHeader header = NextRound(2, 3);
  ExpectTryLater(node_.Admit(header, kDigest, 0, kStart));
  EXPECT_EQ(NumBlocks(1), 4);
  EXPECT_EQ(NumBlocks(2), 4);
  // The refusal did not use up its step.
  node_.Drop(const_cast<NodeSession&>(*node_.Find(Id(1))));
  EXPECT_TRUE(IsAdmitted(node_.Admit(header, kDigest, 0, kStart)));
}

TEST_F(NodeBlocksTest, ASessionAtWorkIsNotPreemptedButWaitedFor) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const Outcome young = node_.Admit(NextRound(2, 1), kDigest, 0, kStart);
  ASSERT_TRUE(IsAdmitted(young));
  const RequestHeader header = NextRound(1, 3);
  const Outcome old = node_.Admit(header, kDigest, 0, kStart);
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(std::holds_alternative<NodeSessions::Wait>(*old));
  RunRound(node_, young, TokenSeq(kKvBlockLength, 0), kStart);
  EXPECT_TRUE(IsAdmitted(node_.Admit(header, kDigest, 0, kStart)));
  EXPECT_EQ(NumBlocks(2), 0);
}

TEST_F(NodeBlocksTest, NobodyIsPreemptedInVain) {
  MustOpen(1, 2);
  MustOpen(2, 3);
  MustOpen(3, 2);
  const Outcome young = node_.Admit(NextRound(3, 1), kDigest, 0, kStart);
  ASSERT_TRUE(IsAdmitted(young));
  // Even with the blocks of the second one the first does not fit.
  const Outcome old = node_.Admit(NextRound(1, 6), kDigest, 0, kStart);
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(std::holds_alternative<NodeSessions::Wait>(*old));
  EXPECT_EQ(NumBlocks(2), 3);
}

// A pass that takes longer than the lease threw away its own cache.
TEST_F(NodeBlocksTest, TheLeaseBeginsAtTheEndOfACallAndNeverEndsWithinOne) {
  const RequestHeader header = Header(1, 1, 2);
  const Outcome outcome = node_.Admit(header, kDigest, 0, kStart);
  ASSERT_TRUE(IsAdmitted(outcome));
  node_.Expire(kStart + seconds(72));
  ASSERT_NE(node_.Find(Id(1)), nullptr);
  RunRound(node_, outcome, header.delta.append_tokens, kStart + seconds(72));
  node_.Expire(kStart + seconds(102));
  EXPECT_EQ(node_.num_sessions(), 1);
  node_.Expire(kStart + seconds(103));
  EXPECT_EQ(node_.num_sessions(), 0);
  EXPECT_EQ(node_.blocks().num_free(), 10);
}

TEST_F(NodeBlocksTest, ADroppedSessionIsUnknownAndItsBlocksAreFree) {
  MustOpen(1, 3);
  const RequestHeader header = NextRound(1, 1);
  const Outcome outcome = node_.Admit(header, kDigest, 0, kStart);
  node_.Drop(*std::get<NodeSession*>(*outcome));  // at work
  EXPECT_EQ(node_.blocks().num_free(), 10);
  EXPECT_EQ(node_.num_cached_tokens(), 0);
  EXPECT_EQ(ReasonOf(node_.Admit(header, kDigest, 0, kStart)),
            MissReason::kUnknownIncarnation);
}

// Whatever is asked for in whatever order, no block is lost or owned twice, and
// the oldest session that is not at work is never refused for long.
TEST_F(NodeBlocksTest, BlocksAddUpAfterEveryStepOfARandomSchedule) {
  std::mt19937 random(5);
  const auto upto = [&](int n) { return static_cast<int>(random() % n); };
  std::vector<std::pair<NodeSession*, TokenSeq>> at_work;
  Clock::time_point now = kStart;
  int num_admitted = 0;
  for (int step = 1; step <= 20000; ++step) {
    now += std::chrono::milliseconds(upto(400));
    const auto name = static_cast<uint8_t>(1 + upto(6));
    const NodeSession* session = node_.Find(Id(name));
    const int choice = upto(10);
    if (choice < 5 && !node_.IsAtWork(Id(name))) {
      RequestHeader header = {.session = Id(name),
                              .step = static_cast<uint64_t>(step)};
      if (session != nullptr && choice > 0) {
        header.incarnation = session->incarnation;
        header.delta.keep_length = upto(session->log.length() + 2);
      }
      header.delta.append_tokens = TokenSeq(1 + upto(40), 0);
      const Outcome outcome = node_.Admit(header, kDigest, upto(20), now);
      if (IsAdmitted(outcome)) {
        at_work.emplace_back(std::get<NodeSession*>(*outcome),
                             header.delta.append_tokens);
        ++num_admitted;
      }
    } else if (choice < 8 && !at_work.empty()) {
      const int index = upto(static_cast<int>(at_work.size()));
      auto& [working, tokens] = at_work[index];
      node_.Extended(*working, tokens);
      if (upto(8) > 0) {
        node_.EndRound(*working, now);
      } else {
        node_.Drop(*working);
      }
      at_work.erase(at_work.begin() + index);
    } else if (choice == 8 && session != nullptr) {
      const RequestHeader header = {.session = Id(name),
                                    .incarnation = session->incarnation,
                                    .step = static_cast<uint64_t>(step)};
      if (upto(3) > 0) {
        node_.Truncate(header, upto(50));
      } else {
        node_.Release(header);
      }
    } else {
      node_.Expire(now);
    }
    ASSERT_TRUE(node_.IsConsistent()) << "step " << step;
  }
  EXPECT_GT(num_admitted, 2000);
  EXPECT_GT(node_.num_preempted(), 100);
}

}  // namespace
}  // namespace outrider
