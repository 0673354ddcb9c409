// SPDX-License-Identifier: Apache-2.0
#include "bench/report/rounds_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/report/html_report.h"

namespace outrider::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Kind = Activity::Kind;

// A verifier of 26 ms, a drafter of 3 ms a draft, 20 ms to each of them; three
// of four rounds hit where they were asked for ahead.
Measurement Round(Schedule schedule, int num_hits, int num_misses) {
  Measurement m = {
      .point = {.cell = {.rtt_ms = 20, .schedule = schedule, .k = 4}},
      .num_rounds = 100,
      .counts = {.num_rounds = 100,
                 .ahead = {.num_hits = num_hits, .num_misses = num_misses}},
      .mean_in_flight = 1,
      .token_ms = {.mean = 20},
      .offered = {1, 1, 1, 1},
      .accepted = {1, 1, 1, 1},
      .tokens_per_round = 3,
      .split = {.verify_ms = 26, .verifier_network_ms = 20, .rest_ms = 1},
      .verifier_rtt_ms = 20,
      .drafter_rtt_ms = 20,
      .plain_token_ms = 25,
      .plain_network_token_ms = 46};
  m.split.draft_ms = 12 * m.in_turn();
  m.split.drafter_network_ms = 20 * m.in_turn();
  return m;
}

CellReport CellOf(const Measurement& m) { return {.measured = m}; }

double End(const CellReport& cell) {
  double end = 0;
  for (const Activity& one : ThreeRounds(cell)) {
    end = std::max(end, one.end_ms);
  }
  return end;
}

int Count(const CellReport& cell, Kind kind) {
  int count = 0;
  for (const Activity& one : ThreeRounds(cell)) {
    count += one.kind == kind ? 1 : 0;
  }
  return count;
}

TEST(RoundsChartTest, InTurnNothingOverlaps) {
  const CellReport cell = CellOf(Round(Schedule::kSequential, 0, 0));
  double end = 0;
  for (const Activity& one : ThreeRounds(cell)) {
    EXPECT_GE(one.begin_ms, end);
    end = one.end_ms;
  }
  // Two round trips, four drafts, a verification; the coordinator between.
  EXPECT_NEAR(end, 3 * (40 + 12 + 26) + 2, 1e-9);
}

TEST(RoundsChartTest, AheadTheDrafterWorksWhileTheVerifierDoes) {
  const CellReport cell = CellOf(Round(Schedule::kPredraft, 75, 25));
  const std::vector<Activity> rounds = ThreeRounds(cell);
  const auto of = [&](Kind kind, int round) {
    for (const Activity& one : rounds) {
      if (one.kind == kind && one.round == round) return one;
    }
    return Activity{.round = -1};
  };
  // One of three rounds drafts in turn: the second, for which the first's
  // drafts ahead were in vain.
  EXPECT_EQ(Count(cell, Kind::kDraftsInTurn), 1);
  EXPECT_EQ(of(Kind::kDraftsInTurn, 1).round, 1);
  EXPECT_EQ(of(Kind::kDraftsInVain, 0).round, 0);
  const Activity ahead = of(Kind::kDraftsAhead, 1);
  const Activity verified = of(Kind::kVerifies, 1);
  EXPECT_LT(ahead.begin_ms, verified.end_ms);
  EXPECT_LT(verified.begin_ms, ahead.end_ms);
  EXPECT_NEAR(End(cell), 3 * 46 + (20 + 12) + 2, 1e-9);
}

TEST(RoundsChartTest, ThePageHasThemWhereSomebodyDraftsAhead) {
  const Measurement in_turn = Round(Schedule::kSequential, 0, 0);
  EXPECT_THAT(ThreeRoundsSvg(MakeReport({}, {in_turn})), IsEmpty());
  const Report report =
      MakeReport({}, {in_turn, Round(Schedule::kPredraft, 75, 25)});
  const std::string svg = ThreeRoundsSvg(report);
  EXPECT_THAT(svg, AllOf(HasSubstr("K = 4 predraft"),
                         HasSubstr("drafting ahead, in vain"),
                         HasSubstr("drafting in turn"), Not(HasSubstr("nan")),
                         Not(HasSubstr("inf"))));
  EXPECT_THAT(ToHtml(report), HasSubstr(svg));
}

TEST(RoundsChartTest, HitsAndWasteAreInTheTable) {
  Measurement ahead = Round(Schedule::kPredraft, 75, 25);
  ahead.num_tokens = 300;
  ahead.counts.ahead.num_wasted = 3750;
  const std::string html = ToHtml(MakeReport({}, {ahead}));
  EXPECT_THAT(html, HasSubstr("<td>75</td><td>12.50</td>"));
}

TEST(RoundsChartTest, WhereNodesShareProcessorsTheReportsSaySo) {
  const Measurement ahead = Round(Schedule::kPredraft, 75, 25);
  const Report apart = MakeReport({}, {ahead});
  EXPECT_THAT(ToMarkdown(apart), Not(HasSubstr("they share")));
  const Report together = MakeReport({.shares_processors = true}, {ahead});
  EXPECT_THAT(ToMarkdown(together), HasSubstr("they share one machine's"));
  EXPECT_THAT(ToHtml(together), HasSubstr("they share one machine's"));
}

}  // namespace
}  // namespace outrider::bench
