// SPDX-License-Identifier: Apache-2.0
// The node's table of the protocol, row by row.
#include "core/session/node_sessions.h"

#include <utility>
#include <variant>

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
using ::testing::ElementsAre;

constexpr uint64_t kDigest = 77;
const NodeSessions::Clock::time_point kStart = {};

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
  Admission Admit(const RequestHeader& header, uint64_t digest = kDigest) {
    return table_.Admit({header, digest}, kStart);
  }
  void MustRun(const RequestHeader& header, uint64_t digest = kDigest) {
    const Admission outcome = Admit(header, digest);
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
  const Admission outcome = Admit(Next(11, 6));
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
  const Admission outcome = Admit(Next(11, 5));
  ASSERT_TRUE(IsAdmitted(outcome));
  EXPECT_FALSE(table_.Truncate(Next(12, 0), 2));
  EXPECT_TRUE(table_.Release(Next(12, 0)));
  EXPECT_EQ(table_.num_sessions(), 1);
  table_.EndRound(*std::get<NodeSession*>(*outcome), kStart);
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_TRUE(table_.IsConsistent());
}

}  // namespace
}  // namespace outrider
