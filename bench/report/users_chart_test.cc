// SPDX-License-Identifier: Apache-2.0
#include "bench/report/users_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report/html_report.h"

namespace outrider::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A pass takes 25 ms and 2 ms a row, and half of the drafts are accepted.
Measurement Ideal(int users, int k) {
  const double plain_ms = 25 + 2.0 * users;
  const double token_ms = (25 + 2.0 * users * (k + 1)) / (1 + 0.5 * k);
  return {.point = {.cell = {.load = {.concurrency = users}, .k = k}},
          .num_requests = users,
          .mean_in_flight = static_cast<double>(users),
          .token_ms = {.mean = token_ms},
          .tokens_per_second = 1e3 * users / token_ms,
          .plain_token_ms = 27,
          .plain_network_token_ms = plain_ms,
          .plain_network_tokens_per_second = 1e3 * users / plain_ms};
}

Report IdealReport(const std::vector<int>& all_users) {
  std::vector<Measurement> measured;
  for (const int users : all_users) {
    for (const int k : {0, 1, 2}) measured.push_back(Ideal(users, k));
  }
  return MakeReport({}, measured);
}

// 25 + 4 u = 1.5 (25 + 2 u) at 12.5 users.
TEST(UsersChartTest, SpeculationPaysUpToWhereItsLineCrossesOne) {
  const Report report = IdealReport({1, 12, 13, 64});
  EXPECT_NEAR(PaysUpTo(report, 0, {.k = 1}).value_or(0), 12.5, 0.05);
  EXPECT_THAT(WherePaying(report),
              ElementsAre(HasSubstr("K = 1 pays up to about 13 users"),
                          HasSubstr("K = 2 pays up to about 13 users")));
}

TEST(UsersChartTest, WhereItAlwaysPaysNothingIsSaid) {
  EXPECT_THAT(WherePaying(IdealReport({1, 2, 4})), IsEmpty());
}

TEST(UsersChartTest, ALineForEachKAndARowForEachNumberOfUsers) {
  const Report report = IdealReport({1, 8, 64});
  const std::string svg = UsersSvg(report);
  EXPECT_THAT(svg, AllOf(HasSubstr("K = 2, 64 users: "), HasSubstr("K = 1"),
                         Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_THAT(ToHtml(report), HasSubstr(svg));
  EXPECT_THAT(ToMarkdown(report),
              HasSubstr("| 8 | 195 (41.0 ms, 1.00) | 211 (38.0 ms, 1.08) |"));
}

// Of the second round trip one cell alone was measured, of the third one none
// of which a speed-up is known.
TEST(UsersChartTest, ASweepThatWasInterruptedIsDrawnToo) {
  std::vector<Measurement> measured = {Ideal(1, 0), Ideal(8, 0), Ideal(64, 0),
                                       Ideal(1, 0), Ideal(1, 0)};
  measured[3].point.cell.rtt_ms = 5;
  measured[4] = {.point = {.cell = {.rtt_ms = 50}}};
  EXPECT_THAT(UsersSvg(MakeReport({}, measured)),
              AllOf(HasSubstr("RTT 5 ms"), HasSubstr("RTT 50 ms"),
                    Not(HasSubstr("nan")), Not(HasSubstr("inf")),
                    Not(HasSubstr("e+"))));
}

TEST(UsersChartTest, TwoLoadsAreNoLine) {
  const Report report = IdealReport({1, 8});
  EXPECT_THAT(UsersSvg(report), IsEmpty());
  EXPECT_THAT(ToMarkdown(report), Not(HasSubstr("Over users")));
}

}  // namespace
}  // namespace outrider::bench
