// SPDX-License-Identifier: Apache-2.0
#include "bench/report/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "bench/report/svg_charts.h"

namespace outrider::bench {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A verifier of 10 ms, a drafter of 1 ms, 0.5 ms of overhead, 3 tokens a round:
// what a machine without any noise would measure.
Measurement Ideal(double rtt_ms, int k, int repeat = 0) {
  const double tokens = k == 0 ? 1 : 3;
  const double draft_network_ms = k == 0 ? 0 : rtt_ms;
  const double round_ms = 10 + k + draft_network_ms + rtt_ms + 0.5;
  return {.point = {.cell = {.rtt_ms = rtt_ms, .k = k}, .repeat = repeat},
          .num_requests = 2,
          .num_rounds = 20,
          .mean_in_flight = 1,
          .token_ms = {.mean = round_ms / tokens},
          .offered = std::vector<int>(k, 10),
          .accepted = std::vector<int>(k, 7),
          .tokens_per_round = tokens,
          .split = {.draft_ms = static_cast<double>(k),
                    .drafter_network_ms = draft_network_ms,
                    .verify_ms = 10,
                    .verifier_network_ms = rtt_ms,
                    .rest_ms = 0.5},
          .verifier_rtt_ms = rtt_ms,
          .drafter_rtt_ms = rtt_ms,
          .model_draft_step_ms = 1,
          .model_verify_ms = 10,
          .plain_token_ms = 10,
          .plain_network_token_ms = 10.5 + rtt_ms};
}

Report IdealReport() {
  return MakeReport({.binding = {{"prompts", "a <b> & \"c\""}}},
                    {Ideal(0, 0), Ideal(0, 2), Ideal(0, 4), Ideal(20, 0),
                     Ideal(20, 2), Ideal(20, 4)});
}

TEST(ReportTest, TheFormulaIsExactWhereNothingIsNoisy) {
  const Report report = IdealReport();
  for (const CellReport& cell : report.cells) {
    ASSERT_TRUE(cell.predicted_speedup().has_value());
    EXPECT_NEAR(*cell.predicted_speedup(), cell.speedup, 1e-9);
  }
  EXPECT_NEAR(*report.median_prediction_error, 0, 1e-9);
}

// Half of the rounds hit and the others draft in turn; all wait for 3 ms.
Measurement IdealAhead(double rtt_ms, int repeat = 0) {
  Measurement m = Ideal(rtt_ms, 4, repeat);
  m.point.cell.schedule = Schedule::kPredraft;
  m.counts = {.num_rounds = 22,  // first ones of two requests included
              .num_drafted = 80,
              .num_accepted = 40,
              .ahead = {.num_hits = 10, .num_misses = 10},
              .drafter = {.num_bytes = 100, .num_messages = 4},
              .verifier = {.num_bytes = 200, .num_messages = 8}};
  m.split.draft_ms = 2;
  m.split.drafter_network_ms = 0.5 * (rtt_ms + 3);
  m.split.wait_ms = 0.5 * 3;
  m.token_ms.mean = m.split.round_ms() / m.tokens_per_round;
  return m;
}

// What drafts made ahead were waited for at the lowest round trip is there once
// in the prediction, in rounds that hit and in others.
TEST(ReportTest, TheFormulaIsExactWhereDraftsMadeAheadComeLate) {
  const Report report =
      MakeReport({}, {IdealAhead(0), IdealAhead(5), IdealAhead(20)});
  for (const CellReport& cell : report.cells) {
    EXPECT_NEAR(cell.prediction_error(), 0, 1e-9);
  }
}

TEST(ReportTest, RepeatsOfDraftsMadeAheadArePredictedAsOneOfThemIs) {
  const Report report = MakeReport(
      {}, {IdealAhead(0), IdealAhead(20), IdealAhead(0, 1), IdealAhead(20, 1)});
  for (const CellReport& cell : report.cells) {
    EXPECT_NEAR(cell.prediction_error(), 0, 1e-9);
    EXPECT_EQ(cell.measured.in_turn(), 0.5);
    EXPECT_EQ(cell.measured.counts,
              (Counts{.num_rounds = 44,
                      .num_drafted = 160,
                      .num_accepted = 80,
                      .ahead = {.num_hits = 20, .num_misses = 20},
                      .drafter = {.num_bytes = 200, .num_messages = 8},
                      .verifier = {.num_bytes = 400, .num_messages = 16}}));
  }
}

TEST(ReportTest, CellsFarFromTheFormulaAreListedWithTheirReason) {
  EXPECT_THAT(IdealReport().LargeDifferences(), IsEmpty());
  Measurement slow = Ideal(20, 4);
  slow.split.verify_ms += 12;  // another program took the processor
  slow.token_ms.mean = slow.split.round_ms() / slow.tokens_per_round;
  Measurement waits = Ideal(20, 2);
  waits.token_ms.mean *= 1.5;  // and its rounds know nothing of it
  const Report report = MakeReport({}, {Ideal(0, 2), Ideal(0, 4), waits, slow});
  EXPECT_THAT(
      report.LargeDifferences(),
      ElementsAre(
          AllOf(HasSubstr("RTT 20 ms, K = 2: measured 0.38"),
                HasSubstr("predicted 0.57 (+50 %)"),
                HasSubstr("add up to 52.50 ms, so that 26.25 lie outside")),
          AllOf(HasSubstr("RTT 20 ms, K = 4"),
                HasSubstr("A round took 66.50 ms, predicted 54.50"),
                HasSubstr("verifying took 22.00 ms in place of 10.00"))));
  EXPECT_THAT(ToHtml(report), HasSubstr("<li>RTT 20 ms, K = 4: measured"));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("- RTT 20 ms, K = 4: measured"));
}

TEST(ReportTest, KByControlIsComparedButNotPredicted) {
  Measurement by_control = Ideal(20, 2);
  by_control.point.cell.k = kAutoK;
  by_control.token_ms.mean /= 2;
  const Report report =
      MakeReport({}, {Ideal(20, 0), Ideal(20, 2), by_control});
  EXPECT_EQ(report.Best(20, {})->cell().k, kAutoK);
  EXPECT_FALSE(report.Best(20, {})->predicted_speedup().has_value());
  EXPECT_THAT(ToHtml(report), HasSubstr("best K = <b>auto</b>"));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("| K = 2 | K = auto |"));
}

TEST(ReportTest, TheBestKIsThatOfItsRow) {
  const Report report = IdealReport();
  EXPECT_EQ(report.Best(0, {})->cell().k, 2);
  EXPECT_EQ(report.Best(20, {})->cell().k, 2);
  EXPECT_EQ(report.Best(1, {}), nullptr);
}

TEST(ReportTest, RepeatsGiveTheirMedianAndTheirRange) {
  Measurement slow = Ideal(0, 2, 1);
  slow.token_ms.mean *= 2;
  Measurement slower = Ideal(0, 2, 2);
  slower.token_ms.mean *= 4;
  const Report report = MakeReport({}, {Ideal(0, 2), slow, slower});
  ASSERT_EQ(report.cells.size(), 1U);
  const CellReport& cell = report.cells[0];
  EXPECT_NEAR(cell.speedup, slow.speedup(), 1e-9);
  EXPECT_NEAR(cell.highest_speedup, 2 * cell.speedup, 1e-9);
  EXPECT_NEAR(cell.lowest_speedup, cell.speedup / 2, 1e-9);
  EXPECT_EQ(cell.measured.num_requests, 6);
}

TEST(ReportTest, RepeatsWithoutABaselineAreNoPartOfASpeedUp) {
  Measurement without = Ideal(20, 2, 1);
  without.plain_token_ms = 0;
  without.plain_network_token_ms = 0;
  const Report report = MakeReport({}, {Ideal(20, 2), without, Ideal(20, 4)});
  const CellReport& cell = report.cells[0];
  EXPECT_EQ(cell.num_repeats, 2);
  EXPECT_EQ(cell.speedup, Ideal(20, 2).speedup());
  EXPECT_EQ(cell.lowest_speedup, cell.speedup);
  EXPECT_EQ(cell.network_speedup, Ideal(20, 2).network_speedup());
}

TEST(ReportTest, WhatHasNothingToBeComparedWithIsLeftBlank) {
  Measurement without = Ideal(20, 2);
  without.plain_network_token_ms = 0;
  const Report over_plain = MakeReport({}, {without});
  EXPECT_THAT(ToMarkdown(over_plain),
              AllOf(HasSubstr("| **0.57** |\n"),
                    HasSubstr("| 1 user | 2 | 0.57 |  | 0.57 |")));
  EXPECT_THAT(ToHtml(over_plain),
              AllOf(HasSubstr("plain decoding inside the verifier (17.5 ms"),
                    Not(HasSubstr("0.00\xC3\x97"))));
  EXPECT_THAT(ToCsv(over_plain), ContainsRegex(",0\\.571429,,0\\.571429,"));
  without.plain_token_ms = 0;
  const Report alone = MakeReport({}, {without});
  EXPECT_EQ(alone.Best(20, {}), nullptr);
  EXPECT_THAT(ToMarkdown(alone), HasSubstr("| 1 user | 2 |  |  |  | 3.00 |"));
  EXPECT_THAT(ToHtml(alone), Not(HasSubstr(">0.00\xE2\x80\x93")));
}

// K = 1 decodes faster here while more users wait for their first token.
TEST(ReportTest, TheBestKOfACrowdHasTheMostTokensASecond) {
  const auto crowd = [](int k, double token_ms, double tokens_per_second) {
    Measurement m = Ideal(0, k);
    m.point.cell.load = {.concurrency = 64};
    m.mean_in_flight = 60;
    m.token_ms.mean = token_ms;
    m.tokens_per_second = tokens_per_second;
    m.plain_network_tokens_per_second = 334;
    return m;
  };
  const Report report =
      MakeReport({}, {crowd(0, 163, 334), crowd(1, 150, 315)});
  EXPECT_EQ(report.Best(0, {.concurrency = 64})->cell().k, 0);
  EXPECT_NEAR(report.cells[1].network_speedup, 0.943, 0.001);
}

TEST(HtmlReportTest, NeedsNothingButItself) {
  const std::string html = ToHtml(IdealReport());
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
}

TEST(HtmlReportTest, TextsFromOutsideAreHarmless) {
  EXPECT_THAT(ToHtml(IdealReport()),
              HasSubstr("a &lt;b&gt; &amp; &quot;c&quot;"));
}

TEST(HtmlReportTest, EachRowOutlinesOneCell) {
  const std::string svg =
      HeatMapSvg(IdealReport(), {}, Ratio::kOverPlainInVerifier);
  size_t num_outlines = 0;
  for (size_t at = svg.find("stroke=\"#111\""); at != std::string::npos;
       at = svg.find("stroke=\"#111\"", at + 1)) {
    ++num_outlines;
  }
  EXPECT_EQ(num_outlines, 2U);
}

TEST(HtmlReportTest, SaysWhenAcceptanceWasLossy) {
  Report report = IdealReport();
  EXPECT_THAT(ToHtml(report),
              AllOf(Not(HasSubstr("Lossy")), HasSubstr("law does not change")));
  report.configuration.is_lossy = true;
  EXPECT_THAT(ToHtml(report),
              AllOf(HasSubstr("Lossy"), Not(HasSubstr("law does not change"))));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("Lossy"));
  EXPECT_THAT(ToCsv(report), HasSubstr("\nno,yes,"));
}

TEST(HtmlReportTest, SaysWhenNodesAreSimulatedAndRequestsFailed) {
  Report report = IdealReport();
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("Simulated nodes")));
  EXPECT_THAT(ToHtml(report), Not(HasSubstr("requests failed")));
  report.configuration.is_simulated = true;
  report.cells[0].measured.num_failures = 3;
  EXPECT_THAT(ToHtml(report), HasSubstr("Simulated nodes"));
  EXPECT_THAT(ToHtml(report), HasSubstr("3 requests failed"));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("Simulated nodes"));
  EXPECT_THAT(ToCsv(report), HasSubstr("\nyes,"));
}

TEST(HtmlReportTest, WithoutResultsThereIsAPageStill) {
  EXPECT_THAT(ToHtml(MakeReport({}, {})), HasSubstr("No results"));
}

TEST(HtmlReportTest, TheDraftersRoundTripIsShownWhereItIsAnother) {
  Measurement apart = Ideal(20, 2);
  EXPECT_EQ(AchievedRtt(apart), "20.00");
  apart.drafter_rtt_ms = 5.02;
  EXPECT_EQ(AchievedRtt(apart), "20.00, drafter 5.02");
  const Report report = MakeReport({}, {apart});
  EXPECT_THAT(ToHtml(report), HasSubstr("20.00, drafter 5.02"));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("| 20 | 20.00, drafter 5.02 |"));
}

TEST(HtmlReportTest, APointCutShortForLackOfPromptsIsSaid) {
  EXPECT_THAT(ToHtml(IdealReport()), Not(HasSubstr("lack of prompts")));
  Measurement short_one = Ideal(20, 2);
  short_one.ran_out_of_prompts = true;
  const Report report = MakeReport({}, {Ideal(20, 0), short_one});
  EXPECT_THAT(ToHtml(report), HasSubstr("cell: RTT 20 ms, 1 user, K = 2."));
  EXPECT_THAT(ToMarkdown(report), HasSubstr("took: RTT 20 ms, 1 user, K = 2."));
}

// Calls of 31.5 ms less their computing, and 1.5 ms of waiting for drafts.
TEST(TableReportTest, TheNetworkOfARoundIsTheSameInBothReports) {
  const Report report = MakeReport({}, {IdealAhead(20)});
  EXPECT_THAT(ToMarkdown(report), HasSubstr("| 2.00 + 33.00 + 10.00 + 0.50 |"));
  EXPECT_THAT(ToHtml(report), HasSubstr("<td>2.00</td><td>33.00</td>"
                                        "<td>10.00</td><td>0.50</td>"));
}

TEST(TableReportTest, EveryRowOfTheMarkdownHasAllColumns) {
  const std::string text = ToMarkdown(IdealReport());
  std::istringstream lines(text.substr(text.find("## All cells")));
  std::string line;
  int num_rows = 0;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] != '|') continue;
    ++num_rows;
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 22) << line;
  }
  EXPECT_EQ(num_rows, 8);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("| achieved |"), HasSubstr("| over K = 0 |"),
            HasSubstr("| tokens/s per user |"), HasSubstr("| requests |")));
}

TEST(TableReportTest, TheCsvsColumnsHaveTheNamesThatScriptsReadThemBy) {
  const std::string csv = ToCsv(IdealReport());
  EXPECT_EQ(
      csv.substr(0, csv.find('\n')),
      "simulated,lossy,rtt_ms,achieved_verifier_rtt_ms,achieved_drafter_rtt_ms,"
      "concurrency,requests_per_second,schedule,k,repeats,"
      "speedup_over_plain_in_verifier,speedup_lowest,speedup_highest,"
      "speedup_over_k0_same_network,predicted_speedup,requests,failures,"
      "draft_failures,misses,ran_out_of_prompts,tokens,"
      "time_to_first_token_ms_p50,time_to_first_token_ms_p90,"
      "time_to_first_token_ms_p99,time_to_first_token_ms_mean,"
      "time_per_output_token_ms_p50,time_per_output_token_ms_p90,"
      "time_per_output_token_ms_p99,time_per_output_token_ms_mean,"
      "end_to_end_ms_p50,end_to_end_ms_p90,end_to_end_ms_p99,"
      "end_to_end_ms_mean,tokens_per_second,tokens_per_second_per_user,"
      "acceptance_by_position,tokens_per_round,drafter_bytes_per_token,"
      "verifier_bytes_per_token,drafter_messages_per_token,"
      "verifier_messages_per_token,round_draft_ms,round_drafter_network_ms,"
      "round_verify_ms,round_verifier_network_ms,round_wait_ms,round_rest_ms,"
      "ahead_hit_share,"
      "draft_tokens_wasted_per_token,plain_in_verifier_token_ms");
}

TEST(TableReportTest, EveryLineOfTheCsvHasAllColumns) {
  const std::string csv = ToCsv(IdealReport());
  std::istringstream lines(csv);
  std::string line;
  std::vector<size_t> num_commas;
  while (std::getline(lines, line)) {
    num_commas.push_back(std::count(line.begin(), line.end(), ','));
  }
  ASSERT_EQ(num_commas.size(), 7U);
  for (const size_t count : num_commas) EXPECT_EQ(count, num_commas[0]);
}

}  // namespace
}  // namespace outrider::bench
