// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_metrics.h"

#include "coordinator/service/generation_tally.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoordinatorMetricsTest : public ::testing::Test {
 protected:
  static GenerationUpdate Round(int num_drafted, int num_accepted,
                                int num_tokens) {
    return {.tokens = std::vector<GeneratedToken>(num_tokens),
            .round = RoundStats{.num_drafted = num_drafted,
                                .num_accepted = num_accepted,
                                .round_seconds = 0.004,
                                .drafter = {.call_seconds = 0.003,
                                            .compute_seconds = 0.001,
                                            .wire_bytes = 90,
                                            .sent_bytes = 30},
                                .verifier = {.call_seconds = 0.002,
                                             .compute_seconds = 0.001,
                                             .wire_bytes = 500,
                                             .sent_bytes = 100,
                                             .misses = {0, 0, 2, 1},
                                             .num_reused = 48}}};
  }
  std::string Page() { return registry_.Serialize(); }

  MetricRegistry registry_{{}};
  CoordinatorMetrics metrics_{registry_};
};

TEST_F(CoordinatorMetricsTest, AddsUpWhatTheRoundsOfAStreamSay) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  tally.Round(Round(4, 4, 5));
  tally.Round(Round(4, 1, 2));
  EXPECT_THAT(Page(), HasSubstr("outrider_requests_running 1\n"));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);

  EXPECT_EQ(tally.num_tokens(), 7);
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr("outrider_rounds_total 2\n"),
            HasSubstr("outrider_draft_tokens_total 8\n"),
            HasSubstr("outrider_accepted_tokens_total 5\n"),
            HasSubstr("outrider_draft_tokens_wasted_total 3\n"),
            HasSubstr("outrider_generated_tokens_total 7\n"),
            HasSubstr("accepted_tokens_per_position_total{position=\"0\"} 2\n"),
            HasSubstr("accepted_tokens_per_position_total{position=\"3\"} 1\n"),
            HasSubstr("draft_tokens_per_position_total{position=\"3\"} 2\n")));
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr(
                "rpc_bytes_total{direction=\"sent\",peer=\"drafter\"} 60\n"),
            HasSubstr("rpc_bytes_total{direction=\"received\",peer="
                      "\"verifier\"} 800\n"),
            HasSubstr("cache_misses_total{peer=\"verifier\",reason="
                      "\"length\"} 4\n"),
            HasSubstr("cache_misses_total{peer=\"verifier\",reason="
                      "\"prefix\"} 2\n"),
            HasSubstr("cache_misses_total{peer=\"verifier\",reason="
                      "\"stale\"} 0\n"),
            HasSubstr("cache_misses_total{peer=\"drafter\",reason="
                      "\"unknown_incarnation\"} 0\n"),
            HasSubstr("reused_prefix_tokens_total{peer=\"drafter\"} 0\n"),
            HasSubstr("reused_prefix_tokens_total{peer=\"verifier\"} 96\n"),
            HasSubstr("time_to_first_token_seconds_count 1\n"),
            HasSubstr("time_per_output_token_seconds_count 1\n"),
            HasSubstr("requests_total{code=\"OK\",finish_reason=\"length\"} "
                      "1\n")));
}

TEST_F(CoordinatorMetricsTest, AResumedStreamsFirstTokensAreNoFirstOnes) {
  CoordinatorMetrics::Tally tally(metrics_, {.is_resumed = true});
  tally.Round(Round(4, 4, 5));
  tally.Round(Round(4, 1, 2));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);
  EXPECT_THAT(Page(),
              AllOf(HasSubstr("time_to_first_token_seconds_count 0\n"),
                    HasSubstr("time_per_output_token_seconds_count 1\n")));
}

// Nor does it take longer where its request has to wait to be read.
TEST_F(CoordinatorMetricsTest, TimesAreFromTheArrivalAndLessWhatClientsTake) {
  const auto arrival =
      CoordinatorMetrics::Clock::now() - std::chrono::seconds(50);
  CoordinatorMetrics::Tally tally(metrics_, {.arrival = arrival});
  tally.Round(Round(4, 4, 5));
  tally.Waited(std::chrono::hours(1));
  tally.Round(Round(4, 1, 1));
  tally.Waited(std::chrono::hours(1));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);
  EXPECT_THAT(Page(),
              AllOf(HasSubstr("time_to_first_token_seconds_sum 50."),
                    HasSubstr("time_per_output_token_seconds_sum -3599.")));
}

// A hit's tokens that its round offers are not in vain yet.
TEST_F(CoordinatorMetricsTest, DraftsMadeAheadAreCountedByWhatBecameOfThem) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  GenerationUpdate hit = Round(4, 3, 4);
  hit.round->ahead = {.outcome = AheadStats::Outcome::kHit, .num_drafted = 32};
  GenerationUpdate miss = Round(4, 4, 5);
  miss.round->ahead = {.outcome = AheadStats::Outcome::kMiss,
                       .num_drafted = 32};
  tally.Round(hit);
  tally.Round(miss);
  tally.Round(miss);
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr("outrider_draft_tokens_wasted_total 93\n"),
            HasSubstr("outrider_drafted_ahead_total{outcome=\"hit\"} 1\n"),
            HasSubstr("outrider_drafted_ahead_total{outcome=\"miss\"} 2\n")));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);
}

TEST_F(CoordinatorMetricsTest, WaitsForDraftsMadeAheadAreNoTimeOfTheNetwork) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  GenerationUpdate hit = Round(4, 3, 4);
  hit.round->ahead = {.outcome = AheadStats::Outcome::kHit,
                      .wait_seconds = 0.25};
  hit.round->drafter.call_seconds = 0.25;
  hit.round->drafter.compute_seconds = 0;
  tally.Round(hit);
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr("outrider_draft_ahead_wait_seconds_sum 0.25\n"),
            HasSubstr("rpc_network_seconds_count{peer=\"drafter\"} 0\n")));
  GenerationUpdate miss = Round(4, 3, 4);
  miss.round->ahead = {.outcome = AheadStats::Outcome::kMiss,
                       .wait_seconds = 0.25};
  miss.round->drafter.call_seconds = 0.25 + 0.75;
  miss.round->drafter.compute_seconds = 0.25;
  miss.round->drafter.queue_seconds = 0.25;
  tally.Round(miss);
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr("outrider_draft_ahead_wait_seconds_count 2\n"),
            HasSubstr("rpc_network_seconds_sum{peer=\"drafter\"} 0.25\n")));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);
}

TEST_F(CoordinatorMetricsTest, ACallThatFailedSaysNothingOfTheNetwork) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  GenerationUpdate update = Round(0, 0, 1);
  update.round->drafter.call_seconds = 30;
  update.round->drafter.num_failures = 1;
  tally.Round(update);
  EXPECT_THAT(Page(),
              AllOf(HasSubstr("network_seconds_count{peer=\"drafter\"} 0\n"),
                    HasSubstr("network_seconds_count{peer=\"verifier\"} 1\n")));
  tally.End(FinishReason::kLength, absl::StatusCode::kOk);
}

TEST_F(CoordinatorMetricsTest, RoundsBeyondTheLastPlaceAreCountedInIt) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  tally.Round(Round(20, 18, 19));
  EXPECT_THAT(
      Page(),
      AllOf(HasSubstr("draft_tokens_per_position_total{position=\"16+\"} 4\n"),
            HasSubstr(
                "accepted_tokens_per_position_total{position=\"16+\"} 2\n")));
}

TEST_F(CoordinatorMetricsTest, LossyGenerationsAreCounted) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  EXPECT_THAT(Page(), HasSubstr("outrider_lossy_requests_total 0\n"));
  tally.CountLossy();
  EXPECT_THAT(Page(), HasSubstr("outrider_lossy_requests_total 1\n"));
}

// As UNKNOWN, it would count as an error of the deployment's own.
TEST_F(CoordinatorMetricsTest, WhatTheVerifierDoesNotServeHasItsOwnCode) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  tally.End(std::nullopt, absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Page(), HasSubstr("requests_total{code=\"FAILED_PRECONDITION\","
                                "finish_reason=\"none\"} 1\n"));
}

TEST_F(CoordinatorMetricsTest, CountsTheLostResidualsOfItsOwnRoundsAlone) {
  MetricRegistry other_registry{{}};
  CoordinatorMetrics other(other_registry);
  CoordinatorMetrics::Tally tally(metrics_, {});
  GenerationUpdate update = Round(4, 1, 2);
  tally.Round(update);
  update.round->lost_residual = true;
  tally.Round(update);
  EXPECT_THAT(Page(), HasSubstr("outrider_residuals_lost_total 1\n"));
  EXPECT_THAT(other_registry.Serialize(),
              HasSubstr("outrider_residuals_lost_total 0\n"));
}

TEST_F(CoordinatorMetricsTest, AFallbackSaysWhy) {
  CoordinatorMetrics::Tally tally(metrics_, {});
  GenerationUpdate update = Round(0, 0, 1);
  for (const PlainReason reason :
       {PlainReason::kNone, PlainReason::kDraftFailed,
        PlainReason::kDrafterFills, PlainReason::kDrafterSlow,
        PlainReason::kNoDrafter}) {
    update.round->plain_reason = reason;
    tally.Round(update);
  }
  EXPECT_THAT(Page(),
              AllOf(HasSubstr("fallback_total{cause=\"draft_failed\"} 1\n"),
                    HasSubstr("fallback_total{cause=\"drafter_fills\"} 1\n"),
                    HasSubstr("fallback_total{cause=\"drafter_slow\"} 1\n"),
                    HasSubstr("fallback_total{cause=\"no_drafter\"} 1\n")));
}

TEST_F(CoordinatorMetricsTest, TheSummaryIsOfTheTimeSinceTheLastOne) {
  EXPECT_THAT(metrics_.TakeSummary(10), IsEmpty());
  CoordinatorMetrics::Tally tally(metrics_, {});
  tally.Round(Round(2, 2, 3));
  tally.Round(Round(2, 1, 2));
  EXPECT_THAT(
      FormatLogLine(LogFormat::kText, LogLevel::kInfo, "t", "acceptance",
                    metrics_.TakeSummary(10)),
      "t I acceptance seconds=10 rounds=2 tokens=5 tokens_per_second=0.5 "
      "tokens_per_round=2.5 drafted=4 accepted=3 acceptance=0.75 "
      "acceptance_by_position=1,0.5\n");
  EXPECT_THAT(Page(), HasSubstr("outrider_effective_k 2\n"));
  EXPECT_THAT(metrics_.TakeSummary(10), IsEmpty());
  EXPECT_THAT(Page(), HasSubstr("outrider_effective_k 0\n"));
}

}  // namespace
}  // namespace outrider
