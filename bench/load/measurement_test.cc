// SPDX-License-Identifier: Apache-2.0
#include "bench/load/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider::bench {
namespace {

using std::chrono::milliseconds;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

RoundStats Round(int num_drafted, int num_accepted) {
  RoundStats round = {.num_drafted = num_drafted,
                      .num_accepted = num_accepted,
                      .round_seconds = 0.022,
                      .verifier = {.call_seconds = 0.020,
                                   .compute_seconds = 0.012,
                                   .wire_bytes = 300,
                                   .num_messages = 2}};
  if (num_drafted > 0) {
    round.round_seconds = 0.029;
    round.drafter = {.call_seconds = 0.007,
                     .compute_seconds = 0.003,
                     .wire_bytes = 100,
                     .num_messages = 2};
  }
  return round;
}

// A prefill round of one token, then one round of K = 2 for each number.
RequestResult Request(const std::vector<int>& accepted) {
  RequestResult request;
  client::GenerationReport& report = request.report;
  report.rounds.push_back(Round(0, 0));
  report.tokens = {1};
  report.num_first_tokens = 1;
  for (const int num_accepted : accepted) {
    report.rounds.push_back(Round(2, num_accepted));
    report.tokens.resize(report.tokens.size() + num_accepted + 1);
  }
  report.finish.emplace();
  report.first_token_time = milliseconds(50);
  const int num_rounds = static_cast<int>(accepted.size());
  report.last_token_time = milliseconds(50 + 30 * num_rounds);
  request.duration = report.last_token_time + milliseconds(10);
  return request;
}

TEST(SummarizeTest, PercentilesAreValuesOfTheSample) {
  std::vector<double> sample;
  for (int i = 100; i >= 1; --i) sample.push_back(i);
  const Spread spread = Summarize(sample);
  EXPECT_EQ(spread.p50, 50);
  EXPECT_EQ(spread.p90, 90);
  EXPECT_EQ(spread.p99, 99);
  EXPECT_EQ(spread.mean, 50.5);
  EXPECT_EQ(Summarize({7}).p99, 7);
  EXPECT_EQ(Summarize({}).mean, 0);
}

TEST(MeasureTest, TimePerTokenLeavesTheFirstTokenOut) {
  LoadResult result = {.wall_time = milliseconds(240)};
  result.requests = {Request({2, 0}), Request({1, 1})};
  const Measurement measured = Measure({}, result);
  // 5 tokens: 60 ms for the four after the first.
  EXPECT_EQ(measured.token_ms.p50, 15);
  EXPECT_EQ(measured.first_token_ms.mean, 50);
  EXPECT_EQ(measured.request_ms.p99, 120);
  EXPECT_EQ(measured.num_tokens, 10);
  EXPECT_THAT(measured.tokens_per_second, DoubleNear(10 / 0.24, 1e-9));
  EXPECT_THAT(measured.mean_in_flight, DoubleNear(1, 1e-9));
}

// Drafts that are looked up in the prompt may come with the first token.
TEST(MeasureTest, TimePerTokenLeavesAllOutThatCameWithTheFirstToken) {
  LoadResult result = {.wall_time = milliseconds(240)};
  result.requests = {Request({2, 0}), Request({1, 1})};
  for (RequestResult& request : result.requests) {
    request.report.tokens.insert(request.report.tokens.begin(), {8, 9});
    request.report.num_first_tokens = 3;
  }
  // All of its tokens came at once: it has no time per token.
  result.requests.push_back(Request({}));
  result.requests.back().report.tokens = {1, 2};
  result.requests.back().report.num_first_tokens = 2;
  const Measurement measured = Measure({}, result);
  EXPECT_EQ(measured.token_ms.p50, 15);
  EXPECT_EQ(measured.token_ms.mean, 15);
}

// Shares of the rounds that the split is of: a first round waits for nothing.
TEST(MeasureTest, RoundsAskedAheadAreAShareOfThoseAfterTheFirst) {
  RequestResult request = Request({2, 0, 1, 2});
  for (int i = 1; i <= 4; ++i) {
    request.report.rounds[i].ahead.outcome = AheadStats::Outcome::kHit;
  }
  LoadResult result = {.wall_time = milliseconds(100)};
  result.requests = {request};
  const Measurement measured = Measure({}, result);
  EXPECT_EQ(measured.asked_ahead(), 1);
  EXPECT_EQ(measured.in_turn(), 0);
}

TEST(MeasureTest, AcceptanceCountsOfferedDraftsByPosition) {
  LoadResult result = {.wall_time = milliseconds(100)};
  result.requests = {Request({2, 0, 1, 2})};
  const Measurement measured = Measure({}, result);
  EXPECT_THAT(measured.offered, ElementsAre(4, 4));
  EXPECT_THAT(measured.accepted, ElementsAre(3, 2));
  EXPECT_THAT(measured.tokens_per_round, DoubleNear(9.0 / 4, 1e-9));
}

TEST(MeasureTest, ARoundIsSplitWithoutTheFirstOne) {
  LoadResult result = {.wall_time = milliseconds(100)};
  result.requests = {Request({0, 0})};
  const RoundSplit split = Measure({}, result).split;
  EXPECT_NEAR(split.draft_ms, 3, 1e-9);
  EXPECT_NEAR(split.drafter_network_ms, 4, 1e-9);
  EXPECT_NEAR(split.verify_ms, 12, 1e-9);
  EXPECT_NEAR(split.verifier_network_ms, 8, 1e-9);
  EXPECT_NEAR(split.rest_ms, 2, 1e-9);
  EXPECT_NEAR(split.round_ms(), 29, 1e-9);
}

TEST(MeasureTest, BytesAndMessagesCountEveryCallOfEveryRound) {
  LoadResult result = {.wall_time = milliseconds(100)};
  result.requests = {Request({2})};  // 4 tokens, 3 calls
  const Measurement measured = Measure({}, result);
  EXPECT_EQ(measured.drafter_bytes_per_token, 100.0 / 4);
  EXPECT_EQ(measured.verifier_bytes_per_token, 600.0 / 4);
  EXPECT_EQ(measured.drafter_messages_per_token, 2.0 / 4);
  EXPECT_EQ(measured.verifier_messages_per_token, 4.0 / 4);
  EXPECT_EQ(measured.counts, (Counts{.num_rounds = 2,
                                     .num_drafted = 2,
                                     .num_accepted = 2,
                                     .drafter = {100, 2},
                                     .verifier = {600, 4}}));
}

// The guesses of a round that all stood are easier: the drafter's own next.
TEST(MeasureTest, HitsAfterARefusalAreCountedApart) {
  RequestResult request = Request({2, 0, 1, 2, 0});
  const auto mark = [&](int round, AheadStats::Outcome outcome) {
    request.report.rounds[round].ahead.outcome = outcome;
  };
  mark(2, AheadStats::Outcome::kHit);   // all stood
  mark(3, AheadStats::Outcome::kMiss);  // refused
  mark(4, AheadStats::Outcome::kHit);   // refused
  LoadResult result = {.wall_time = milliseconds(100)};
  result.requests = {request, request};
  const AheadCounts ahead = Measure({}, result).counts.ahead;
  EXPECT_EQ(ahead.num_hits, 4);
  EXPECT_EQ(ahead.num_misses, 2);
  EXPECT_EQ(ahead.num_after_refusal, 4);
  EXPECT_EQ(ahead.num_hits_after_refusal, 2);
  EXPECT_EQ(ahead.hit_share_after_refusal(), 0.5);
}

TEST(MeasureTest, AFailedRequestIsAFailureAndNothingElse) {
  LoadResult result = {.wall_time = milliseconds(240)};
  result.requests = {Request({2, 0}), Request({2, 2})};
  result.requests[1].status = absl::UnavailableError("gone");
  result.requests[1].report.finish.reset();
  Measurement measured = Measure({}, result);
  EXPECT_EQ(measured.num_requests, 1);
  EXPECT_EQ(measured.num_failures, 1);
  EXPECT_EQ(measured.first_failure, "gone");
  EXPECT_EQ(measured.num_tokens, 5);
  measured.plain_token_ms = 30;
  EXPECT_EQ(measured.speedup(), 2);  // 15 ms a token
}

TEST(MeasurementTest, OneUsersTimePerTokenIsCompared) {
  Measurement measured;
  EXPECT_EQ(measured.speedup(), 0);
  EXPECT_EQ(measured.network_speedup(), 0);
  measured.token_ms.mean = 10;
  measured.mean_in_flight = 1;
  measured.tokens_per_second = 90;  // it has waited for the first one
  measured.plain_token_ms = 20;
  measured.plain_network_token_ms = 30;
  measured.plain_network_tokens_per_second = 32;
  EXPECT_EQ(measured.speedup(), 2);
  EXPECT_EQ(measured.network_speedup(), 3);
  // An open loop is compared alike, however many are in it by chance.
  measured.point.cell.load = {.concurrency = 0, .rate = 5};
  measured.mean_in_flight = 0.1;
  EXPECT_EQ(measured.speedup(), 2);
  EXPECT_EQ(measured.network_speedup(), 3);
}

// Whoever waits for a first token gets none: a K that makes users wait longer
// in line, and then decodes faster beside fewer others, has gained nothing.
TEST(MeasurementTest, ACrowdsTokensASecondAreCompared) {
  Measurement measured;
  measured.point.cell.load = {.concurrency = 64};
  EXPECT_EQ(measured.speedup(), 0);
  EXPECT_EQ(measured.network_speedup(), 0);
  measured.token_ms.mean = 150;
  measured.mean_in_flight = 64;
  measured.tokens_per_second = 300;
  measured.plain_token_ms = 25;
  measured.plain_network_token_ms = 165;
  measured.plain_network_tokens_per_second = 400;
  EXPECT_EQ(measured.speedup(), 7.5);
  EXPECT_EQ(measured.network_speedup(), 0.75);
}

}  // namespace
}  // namespace outrider::bench
