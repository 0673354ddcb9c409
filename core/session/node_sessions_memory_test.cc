// SPDX-License-Identifier: Apache-2.0
// What a node's sessions hold of its memory, and who makes room for whom.
#include <chrono>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/session/node_sessions.h"
#include "core/testing/named_session.h"
#include "core/testing/session_rounds.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Admission;
using ::outrider::testing::Id;
using ::outrider::testing::IsAdmitted;
using ::outrider::testing::ReasonOf;
using ::outrider::testing::RunRound;
using ::outrider::testing::StatusIs;
using std::chrono::seconds;

// A node of ten blocks, and sessions that fill whole ones.
class NodeBlocksTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kDigest = 77;
  static constexpr NodeSessions::Clock::time_point kStart = {};

  static RequestHeader Header(uint8_t name, uint64_t step, int num_blocks,
                              Incarnation incarnation = {}, int keep = 0) {
    return {.session = Id(name),
            .incarnation = incarnation,
            .step = step,
            .delta = {keep * kKvBlockLength,
                      TokenSeq(num_blocks * kKvBlockLength, 0)}};
  }
  Admission Open(uint8_t name, int num_blocks, seconds at = {},
                 bool has_begun = false) {
    const RequestHeader header = Header(name, 1, num_blocks);
    Admission outcome = node_.Admit(
        {header, kDigest, /*num_draft_tokens=*/0, has_begun}, kStart + at);
    if (IsAdmitted(outcome)) {
      RunRound(node_, outcome, header.delta.append_tokens, kStart + at);
    }
    return outcome;
  }
  static bool IsAtWork(const NodeSession* session) {
    return session != nullptr && session->is_at_work;
  }
  // A further round of a session that is there.
  RequestHeader NextRound(uint8_t name, int num_blocks) const {
    const NodeSession& session = *node_.Find(Id(name));
    return Header(name, session.last_step + 1, num_blocks, session.incarnation,
                  session.log.length() / kKvBlockLength);
  }
  Admission Grow(uint8_t name, int num_blocks, seconds at = {}) {
    const RequestHeader header = NextRound(name, num_blocks);
    Admission outcome = node_.Admit({header, kDigest}, kStart + at);
    if (IsAdmitted(outcome)) {
      RunRound(node_, outcome, header.delta.append_tokens, kStart + at);
    }
    return outcome;
  }
  void CutTo(uint8_t name, int num_blocks) {
    const NodeSession& session = *node_.Find(Id(name));
    EXPECT_TRUE(node_.Truncate({.session = Id(name),
                                .incarnation = session.incarnation,
                                .step = session.last_step},
                               num_blocks * kKvBlockLength));
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

void ExpectTryLater(const Admission& admission) {
  ASSERT_THAT(admission.status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  const auto delay = RetryDelayOf(admission.status());
  ASSERT_TRUE(delay.has_value());
  EXPECT_GE(delay->count(), 50);
  EXPECT_LE(delay->count(), 1000);
}

TEST_F(NodeBlocksTest, ARoundReservesItsDraftsAndGivesBackWhatItDidNotUse) {
  const RequestHeader header = Header(1, 1, 2);
  const Admission outcome =
      node_.Admit({header, kDigest, /*num_draft_tokens=*/17}, kStart);
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

TEST_F(NodeBlocksTest, AStreamThatHasBegunElsewhereNeedsItsOwnBlocksAlone) {
  MustOpen(1, 4);
  MustOpen(2, 3);
  ExpectTryLater(Open(3, 4, {}, /*has_begun=*/true));
  EXPECT_TRUE(IsAdmitted(Open(3, 3, {}, /*has_begun=*/true)));
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
  const Admission outcome = Open(2, 11);
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
  EXPECT_EQ(ReasonOf(node_.Admit({header, kDigest}, kStart)),
            MissReason::kLength);
  header.delta.keep_length = 0;
  node_.Drop(const_cast<NodeSession&>(*node_.Find(Id(2))));
  EXPECT_TRUE(IsAdmitted(node_.Admit({header, kDigest}, kStart)));
}

// Else it takes what the others need in their next rounds.
TEST_F(NodeBlocksTest, WhoWasPreemptedLeavesABlockToEachOlderSession) {
  MustOpen(1, 3);
  MustOpen(2, 2);
  MustOpen(3, 2);
  MustGrow(1, 4, seconds(0));  // one is free
  ExpectTryLater(Grow(3, 1));
  CutTo(1, 6);
  ExpectTryLater(Grow(3, 1));
  CutTo(1, 5);
  MustGrow(3, 1, seconds(0));
  MustGrow(1, 1, seconds(0));
  MustGrow(2, 1, seconds(0));
  EXPECT_EQ(NumBlocks(3), 1);
  EXPECT_EQ(node_.num_preempted(), 1);
}

TEST_F(NodeBlocksTest, WhatIsLeftToTheOlderOnesIsTakenFromTheYounger) {
  MustOpen(1, 2);
  MustOpen(2, 5);
  MustGrow(1, 5, seconds(0));
  EXPECT_EQ(NumBlocks(2), 0);
  MustOpen(3, 1);  // two are free
  MustGrow(2, 2, seconds(0));
  EXPECT_EQ(NumBlocks(3), 0);
  EXPECT_EQ(node_.blocks().num_free(), 1);
}

TEST_F(NodeBlocksTest, WhoNeedsNearlyAllBlocksLeavesWhatIsBesideThem) {
  for (const uint8_t name : {1, 2, 3}) MustOpen(name, 1);
  CutTo(3, 0);
  CutTo(2, 0);
  ExpectTryLater(Grow(3, 9));
  CutTo(1, 0);
  MustGrow(3, 9, seconds(0));
  CutTo(3, 0);
  MustGrow(3, 10, seconds(0));
}

TEST_F(NodeBlocksTest, TheOldestIsNeverRefusedWhereTheOthersAreAtRest) {
  MustOpen(1, 1);
  MustOpen(2, 4);
  MustOpen(3, 2);
  CutTo(1, 0);
  MustGrow(1, 10, seconds(0));
  EXPECT_EQ(node_.num_preempted(), 2);
}

TEST_F(NodeBlocksTest, WorkAheadTakesButWhatIsFree) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const RequestHeader header = NextRound(1, 3);
  SessionCall call = {header, kDigest};
  call.is_ahead = true;
  ExpectTryLater(node_.Admit(call, kStart));
  // Nor is there anything to wait for.
  const Admission young = node_.Admit({NextRound(2, 1), kDigest}, kStart);
  ExpectTryLater(node_.Admit(call, kStart));
  RunRound(node_, young, TokenSeq(kKvBlockLength, 0), kStart);
  EXPECT_EQ(NumBlocks(2), 5);
  call.is_ahead = false;
  EXPECT_TRUE(IsAdmitted(node_.Admit(call, kStart)));
  EXPECT_EQ(NumBlocks(2), 0);
}

TEST_F(NodeBlocksTest, TheYoungestItselfIsRefusedAndKeepsWhatItHas) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const RequestHeader header = NextRound(2, 3);
  ExpectTryLater(node_.Admit({header, kDigest}, kStart));
  EXPECT_EQ(NumBlocks(1), 4);
  EXPECT_EQ(NumBlocks(2), 4);
  // The refusal did not use up its step.
  node_.Drop(const_cast<NodeSession&>(*node_.Find(Id(1))));
  EXPECT_TRUE(IsAdmitted(node_.Admit({header, kDigest}, kStart)));
}

TEST_F(NodeBlocksTest, ASessionAtWorkIsNotPreemptedButWaitedFor) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const Admission young = node_.Admit({NextRound(2, 1), kDigest}, kStart);
  ASSERT_TRUE(IsAdmitted(young));
  const RequestHeader header = NextRound(1, 3);
  const Admission old = node_.Admit({header, kDigest}, kStart);
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(std::holds_alternative<NodeSessions::Wait>(*old));
  RunRound(node_, young, TokenSeq(kKvBlockLength, 0), kStart);
  EXPECT_TRUE(IsAdmitted(node_.Admit({header, kDigest}, kStart)));
  EXPECT_EQ(NumBlocks(2), 0);
}

TEST_F(NodeBlocksTest, TheLeaseOfASessionWhoseCallWaitsDoesNotRunOut) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  const Admission young = node_.Admit({NextRound(2, 1), kDigest}, kStart);
  ASSERT_TRUE(IsAdmitted(young));
  const RequestHeader header = NextRound(1, 3);
  const auto later = kStart + seconds(29);
  ASSERT_TRUE(std::holds_alternative<NodeSessions::Wait>(
      *node_.Admit({header, kDigest}, later)));
  RunRound(node_, young, TokenSeq(kKvBlockLength, 0), later + seconds(5));
  node_.Expire(later + seconds(6));
  EXPECT_TRUE(IsAdmitted(node_.Admit({header, kDigest}, later + seconds(6))));
}

TEST_F(NodeBlocksTest, TheLeaseOfASessionThatIsRefusedDoesNotRunOut) {
  MustOpen(1, 4);
  MustOpen(2, 4);
  ExpectTryLater(Grow(2, 3, seconds(29)));
  node_.Expire(kStart + seconds(35));
  EXPECT_EQ(NumBlocks(1), -1);
  ASSERT_EQ(NumBlocks(2), 4);
  EXPECT_TRUE(IsAdmitted(Grow(2, 3, seconds(35))));
}

TEST_F(NodeBlocksTest, NobodyIsPreemptedInVain) {
  MustOpen(1, 2);
  MustOpen(2, 3);
  MustOpen(3, 2);
  const Admission young = node_.Admit({NextRound(3, 1), kDigest}, kStart);
  ASSERT_TRUE(IsAdmitted(young));
  // Even with the blocks of the second one the first does not fit.
  const Admission old = node_.Admit({NextRound(1, 6), kDigest}, kStart);
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(std::holds_alternative<NodeSessions::Wait>(*old));
  EXPECT_EQ(NumBlocks(2), 3);
}

// A pass that takes longer than the lease threw away its own cache.
TEST_F(NodeBlocksTest, TheLeaseBeginsAtTheEndOfACallAndNeverEndsWithinOne) {
  const RequestHeader header = Header(1, 1, 2);
  const Admission outcome = node_.Admit({header, kDigest}, kStart);
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
  const Admission outcome = node_.Admit({header, kDigest}, kStart);
  node_.Drop(*std::get<NodeSession*>(*outcome));  // at work
  EXPECT_EQ(node_.blocks().num_free(), 10);
  EXPECT_EQ(node_.num_cached_tokens(), 0);
  EXPECT_EQ(ReasonOf(node_.Admit({header, kDigest}, kStart)),
            MissReason::kUnknownIncarnation);
}

// Each text was counted again with every further one: 0.8 s under the engine's
// lock, for 1024 texts in 65 536 blocks.
class ManyBlocksTest : public ::testing::Test {
 protected:
  static constexpr int kNumSessions = 60;
  static constexpr int kEach = 30;  // blocks; one is left for each besides
  static constexpr int kNumBlocks = kNumSessions * (kEach + 1);
  static constexpr NodeSessions::Clock::time_point kNow = {};

  ManyBlocksTest() {
    for (uint8_t name = 1; name <= kNumSessions; ++name) {
      const RequestHeader header = Opening(name, kEach);
      const Admission admission = node_.Admit({header, 1}, kNow);
      EXPECT_TRUE(IsAdmitted(admission));
      node_.Extended(*std::get<NodeSession*>(*admission),
                     header.delta.append_tokens);
      at_work_.push_back(std::get<NodeSession*>(*admission));
    }
    node_.EndRound(*at_work_.front(), kNow);
  }
  static RequestHeader Opening(uint8_t name, int num_blocks) {
    return {.session = Id(name),
            .step = 1,
            .delta = {0, TokenSeq(num_blocks * kKvBlockLength, 0)}};
  }
  // A call of the oldest session that needs all that there is.
  RequestHeader NeedsAll() const {
    RequestHeader header = Opening(1, kNumBlocks - kEach);
    header.incarnation = at_work_.front()->incarnation;
    header.step = 2;
    header.delta.keep_length = kEach * kKvBlockLength;
    return header;
  }
  // Blocks, in search of room for the call.
  int64_t NumLookedAtFor(const RequestHeader& header, bool holds_up_stream) {
    const int64_t before = node_.num_looked_at();
    last_ = node_.Admit({header, 1, 0, holds_up_stream}, kNow);
    return node_.num_looked_at() - before;
  }

  NodeSessions node_{{.num_blocks = kNumBlocks}};
  std::vector<NodeSession*> at_work_;  // the first one is at rest
  Admission last_ = absl::UnknownError("none yet");
};

TEST_F(ManyBlocksTest, TextsThatAreTooFewAreLookedAtOnce) {
  const RequestHeader header = Opening(99, kNumBlocks);
  EXPECT_LE(NumLookedAtFor(header, /*holds_up_stream=*/true), kNumBlocks);
  ExpectTryLater(last_);
}

TEST_F(ManyBlocksTest, TextsThatGiveWayAreLookedAtTwice) {
  EXPECT_LE(NumLookedAtFor(NeedsAll(), /*holds_up_stream=*/true),
            2 * kNumBlocks);
  EXPECT_EQ(at_work_.back()->gives_way_to, Id(1));
}

TEST_F(ManyBlocksTest, VictimsAreLookedAtTwice) {
  for (int i = 1; i < kNumSessions; ++i) node_.EndRound(*at_work_[i], kNow);
  EXPECT_LE(NumLookedAtFor(NeedsAll(), /*holds_up_stream=*/false),
            2 * kNumBlocks);
  EXPECT_TRUE(IsAdmitted(last_));
  EXPECT_EQ(node_.num_preempted(), kNumSessions - 1);
}

TEST_F(ManyBlocksTest, ForAnOrdinaryOpeningNobodyIsLookedAt) {
  EXPECT_EQ(NumLookedAtFor(Opening(99, 1), /*holds_up_stream=*/false), 0);
  ExpectTryLater(last_);
}

// Whatever is asked for in whatever order, no block is lost or owned twice, and
// the oldest session that is not at work is never refused for long.
TEST_F(NodeBlocksTest, BlocksAddUpAfterEveryStepOfARandomSchedule) {
  std::mt19937 random(5);
  const auto upto = [&](int n) { return static_cast<int>(random() % n); };
  std::vector<std::pair<NodeSession*, TokenSeq>> at_work;
  NodeSessions::Clock::time_point now = kStart;
  int num_admitted = 0;
  for (int step = 1; step <= 20000; ++step) {
    now += std::chrono::milliseconds(upto(400));
    const auto name = static_cast<uint8_t>(1 + upto(6));
    const NodeSession* session = node_.Find(Id(name));
    const int choice = upto(10);
    if (choice < 5 && !IsAtWork(session)) {
      RequestHeader header = {.session = Id(name),
                              .step = static_cast<uint64_t>(step)};
      if (session != nullptr && choice > 0) {
        header.incarnation = session->incarnation;
        header.delta.keep_length = upto(session->log.length() + 2);
      }
      header.delta.append_tokens = TokenSeq(1 + upto(40), 0);
      const Admission outcome = node_.Admit({header, kDigest, upto(20)}, now);
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
