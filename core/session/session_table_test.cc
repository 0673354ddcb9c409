// SPDX-License-Identifier: Apache-2.0
// The node's table of the protocol, row by row.
#include "core/session/session_table.h"

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Admission = SessionTable::Admission;
using Outcome = absl::StatusOr<std::variant<Admission, Miss>>;

constexpr uint64_t kDigest = 77;
const SessionTable::Clock::time_point kStart = {};

SessionId Id(uint8_t name) { return {.bytes = {name}}; }

std::optional<MissReason> ReasonOf(const Outcome& outcome) {
  if (!outcome.ok() || std::holds_alternative<Admission>(*outcome)) return {};
  return std::get<Miss>(*outcome).reason;
}
bool IsAdmitted(const Outcome& outcome) {
  return outcome.ok() && std::holds_alternative<Admission>(*outcome);
}

// A table with one live session of five tokens, last seen at step 10.
class SessionTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    incarnation_ = MustAdmit(Open(10, {1, 2, 3, 4, 5})).incarnation;
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

  Outcome Admit(const RequestHeader& header, uint64_t digest = kDigest) {
    return table_.Admit(header, digest, /*num_draft_tokens=*/0, kStart);
  }
  // Admits and records, as an engine does.
  Admission MustAdmit(const RequestHeader& header, uint64_t digest = kDigest) {
    const Outcome outcome = Admit(header, digest);
    EXPECT_TRUE(IsAdmitted(outcome));
    if (!IsAdmitted(outcome)) return {};
    const auto admission = std::get<Admission>(*outcome);
    table_.Record(header.session, admission.keep_length,
                  header.delta.append_tokens);
    return admission;
  }

  SessionTable table_{SessionTable::Options()};
  Incarnation incarnation_;
};

TEST_F(SessionTableTest, AnUnknownIncarnationIsAMiss) {
  RequestHeader header = Next(11, 5);
  header.incarnation = Id(200);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kUnknownIncarnation);
  header = Next(11, 5);
  header.session = Id(2);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kUnknownIncarnation);
  // Neither had an effect.
  EXPECT_TRUE(IsAdmitted(Admit(Next(11, 5))));
}

TEST_F(SessionTableTest, AnOpenWithALaterStepMintsAndDropsTheOldState) {
  const Admission admission = MustAdmit(Open(11, {9}));
  EXPECT_FALSE(admission.incarnation.is_none());
  EXPECT_NE(admission.incarnation, incarnation_);
  EXPECT_EQ(admission.keep_length, 0);
  EXPECT_THAT(table_.Tokens(Id(1))->tokens(), ElementsAre(9));
  EXPECT_EQ(ReasonOf(Admit(Next(12, 1))), MissReason::kUnknownIncarnation);
}

TEST_F(SessionTableTest, TheSameOpenAgainKeepsItsIncarnation) {
  const Admission again = MustAdmit(Open(10, {1, 2, 3, 4, 5}));
  EXPECT_EQ(again.incarnation, incarnation_);
  EXPECT_EQ(table_.CachedLength(Id(1)), 5);
}

TEST_F(SessionTableTest, AnyOtherOpenIsStaleAndHasNoEffect) {
  EXPECT_EQ(ReasonOf(Admit(Open(9, {1}))), MissReason::kStale);
  EXPECT_EQ(ReasonOf(Admit(Open(10, {1}), kDigest + 1)), MissReason::kStale);
  MustAdmit(Next(11, 5));
  // The step that opened is no longer the last one.
  EXPECT_EQ(ReasonOf(Admit(Open(10, {1, 2, 3, 4, 5}))), MissReason::kStale);
  // The last step, but not the one that opened.
  EXPECT_EQ(ReasonOf(Admit(Open(11, {6}))), MissReason::kStale);
  EXPECT_THAT(table_.Tokens(Id(1))->tokens(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(SessionTableTest, AnEarlierStepIsStaleAndHasNoEffect) {
  MustAdmit(Next(12, 5));
  EXPECT_EQ(ReasonOf(Admit(Next(11, 2))), MissReason::kStale);
  EXPECT_EQ(table_.CachedLength(Id(1)), 6);
}

TEST_F(SessionTableTest, TheSameStepAgainSetsTheLengthAndDoesNotAppendTwice) {
  MustAdmit(Next(11, 4, {8, 9}));
  MustAdmit(Next(11, 4, {8, 9}));
  EXPECT_THAT(table_.Tokens(Id(1))->tokens(), ElementsAre(1, 2, 3, 4, 8, 9));
}

TEST_F(SessionTableTest, OneStepWithTwoContentsIsMalformed) {
  MustAdmit(Next(11, 4, {8}));
  EXPECT_THAT(Admit(Next(11, 4, {9}), kDigest + 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTableTest, ALengthBeyondTheCacheIsAMissThatSaysHowMuchThereIs) {
  const Outcome outcome = Admit(Next(11, 6));
  ASSERT_EQ(ReasonOf(outcome), MissReason::kLength);
  EXPECT_EQ(std::get<Miss>(*outcome).cached_length, 5);
}

TEST_F(SessionTableTest, AnotherPrefixOfTheRightLengthIsAMiss) {
  TokenLog ours(Id(1));
  ours.Append({1, 2, 30});
  RequestHeader header = Next(11, 3);
  header.prefix_hash = ours.PrefixHash(3);
  EXPECT_EQ(ReasonOf(Admit(header)), MissReason::kPrefix);
  header.delta.keep_length = 2;
  header.prefix_hash = ours.PrefixHash(2);
  EXPECT_TRUE(IsAdmitted(Admit(header)));
}

TEST_F(SessionTableTest, AMissDoesNotUseUpItsStep) {
  EXPECT_EQ(ReasonOf(Admit(Next(11, 6))), MissReason::kLength);
  EXPECT_TRUE(IsAdmitted(Admit(Next(11, 5), kDigest + 1)));
}

TEST_F(SessionTableTest, AnOpenThatKeepsTokensIsMalformed) {
  RequestHeader header = Open(11, {1});
  header.delta.keep_length = 1;
  EXPECT_THAT(Admit(header), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTableTest, AdvisoryCutsObeyStepAndIncarnation) {
  EXPECT_FALSE(table_.Truncate(Next(9, 0), 2));
  RequestHeader stranger = Next(11, 0);
  stranger.incarnation = Id(200);
  EXPECT_FALSE(table_.Truncate(stranger, 2));
  EXPECT_FALSE(table_.Release(stranger));
  EXPECT_FALSE(table_.Release(Next(9, 0)));
  EXPECT_EQ(table_.CachedLength(Id(1)), 5);

  EXPECT_TRUE(table_.Truncate(Next(11, 0), 2));
  EXPECT_EQ(table_.CachedLength(Id(1)), 2);
  EXPECT_TRUE(table_.Truncate(Next(11, 0), 4));  // never longer
  EXPECT_EQ(table_.CachedLength(Id(1)), 2);
  EXPECT_TRUE(table_.Release(Next(11, 0)));
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_EQ(table_.num_cached_tokens(), 0);
  EXPECT_FALSE(table_.Release(Next(12, 0)));
}

// Whoever cancels an opening before its answer does not know the incarnation.
TEST_F(SessionTableTest, AReleaseWithoutIncarnationReleasesWhatWasOpened) {
  RequestHeader release = {.session = Id(1), .step = 9};
  EXPECT_FALSE(table_.Release(release));  // of an opening before this one
  EXPECT_EQ(table_.num_sessions(), 1);
  release.step = 10;
  EXPECT_TRUE(table_.Release(release));
  EXPECT_EQ(table_.num_sessions(), 0);
  EXPECT_FALSE(table_.Release(release));
}

TEST_F(SessionTableTest, AnOpeningThatArrivesBehindItsReleaseIsStale) {
  const RequestHeader release = {.session = Id(2), .step = 5};
  EXPECT_FALSE(table_.Release(release));
  EXPECT_EQ(ReasonOf(Admit(Open(4, {1}, Id(2)))), MissReason::kStale);
  EXPECT_EQ(ReasonOf(Admit(Open(5, {1}, Id(2)))), MissReason::kStale);
  EXPECT_EQ(table_.num_sessions(), 1);
  EXPECT_TRUE(IsAdmitted(Admit(Open(6, {1}, Id(2)))));
  EXPECT_TRUE(IsAdmitted(Admit(Open(1, {1}, Id(3)))));
}

TEST_F(SessionTableTest, ADroppedSessionIsUnknownAndCountsForNothing) {
  table_.Drop(Id(1));
  table_.Drop(Id(1));
  EXPECT_EQ(table_.num_cached_tokens(), 0);
  EXPECT_EQ(table_.Tokens(Id(1)), nullptr);
  EXPECT_EQ(table_.CachedLength(Id(1)), 0);
  EXPECT_EQ(ReasonOf(Admit(Next(11, 5))), MissReason::kUnknownIncarnation);
}

// Opens session `name` with so many tokens; returns who had to go.
std::vector<SessionId> OpenSession(SessionTable& table, uint8_t name,
                                   int num_tokens,
                                   std::chrono::seconds at = {}) {
  const RequestHeader header = {
      .session = Id(name),
      .step = 1,
      .delta = {.append_tokens = TokenSeq(num_tokens, 0)}};
  const Outcome outcome = table.Admit(header, kDigest, 0, kStart + at);
  EXPECT_TRUE(IsAdmitted(outcome));
  table.Record(Id(name), 0, header.delta.append_tokens);
  return std::get<Admission>(*outcome).evicted;
}

TEST(SessionTableEvictionTest, TheLongestIdleGoesWhereSessionsAreTooMany) {
  SessionTable table({.max_sessions = 2});
  EXPECT_THAT(OpenSession(table, 1, 1), IsEmpty());
  EXPECT_THAT(OpenSession(table, 2, 1), IsEmpty());
  EXPECT_THAT(OpenSession(table, 1, 1), IsEmpty());  // used again
  EXPECT_THAT(OpenSession(table, 3, 1), ElementsAre(Id(2)));
  EXPECT_EQ(table.num_sessions(), 2);
}

TEST(SessionTableEvictionTest, AsManyGoAsTheTokensNeed) {
  SessionTable table({.max_cached_tokens = 10});
  OpenSession(table, 1, 3);
  OpenSession(table, 2, 3);
  OpenSession(table, 3, 3);
  EXPECT_THAT(OpenSession(table, 4, 6), ElementsAre(Id(1), Id(2)));
  EXPECT_EQ(table.num_cached_tokens(), 9);
  // Drafts count before they are recorded.
  const RequestHeader header = {
      .session = Id(5), .step = 1, .delta = {.append_tokens = {0}}};
  const Outcome outcome =
      table.Admit(header, kDigest, /*num_draft_tokens=*/3, kStart);
  ASSERT_TRUE(IsAdmitted(outcome));
  EXPECT_THAT(std::get<Admission>(*outcome).evicted, ElementsAre(Id(3)));
}

TEST(SessionTableEvictionTest, NobodyGoesForASessionThatCanNeverFit) {
  SessionTable table({.max_cached_tokens = 10});
  OpenSession(table, 1, 8);
  const RequestHeader header = {
      .session = Id(2), .step = 1, .delta = {.append_tokens = TokenSeq(11, 0)}};
  EXPECT_THAT(table.Admit(header, kDigest, 0, kStart),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(table.CachedLength(Id(1)), 8);
  EXPECT_EQ(table.num_sessions(), 1);
}

TEST(SessionTableLeaseTest, ALeaseIsRenewedByUseAndEndsAfterIt) {
  using std::chrono::seconds;
  SessionTable table({.lease = seconds(30)});
  OpenSession(table, 1, 1, seconds(0));
  OpenSession(table, 2, 1, seconds(10));
  OpenSession(table, 1, 1, seconds(20));
  EXPECT_THAT(table.Expire(kStart + seconds(40)), IsEmpty());
  EXPECT_THAT(table.Expire(kStart + seconds(41)), ElementsAre(Id(2)));
  EXPECT_THAT(table.Expire(kStart + seconds(51)), ElementsAre(Id(1)));
  EXPECT_EQ(table.num_sessions(), 0);
  EXPECT_EQ(table.num_cached_tokens(), 0);
}

}  // namespace
}  // namespace outrider
