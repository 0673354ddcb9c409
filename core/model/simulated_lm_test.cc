// SPDX-License-Identifier: Apache-2.0
#include "core/model/simulated_lm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A model that does not sleep, and how long it would have.
struct Fixture {
  explicit Fixture(double acceptance = 1, double outcome_hit = 0)
      : model({.pass_time = milliseconds(25),
               .row_time = std::chrono::microseconds(250),
               .acceptance = acceptance,
               .outcome_hit = outcome_hit,
               .sleep_until = [this](SimulatedLm::Clock::time_point until) {
                 wakes.push_back(until);
               }}) {
    for (KvBlockId i = 0; i < 2000; ++i) table.push_back(1999 - i);
    EXPECT_TRUE(model.AllocateKvBlocks(2000).ok());
  }

  LogitRows Run(const TokenSeq& tokens, int num_rows, int cached_length = 0) {
    return model
        .Extend({{.blocks = table,
                  .cached_length = cached_length,
                  .tokens = tokens,
                  .num_rows = num_rows}})[0]
        .value();
  }

  std::vector<KvBlockId> table;
  std::vector<SimulatedLm::Clock::time_point> wakes;
  SimulatedLm model;
};

std::vector<float> ToVector(absl::Span<const float> row) {
  return {row.begin(), row.end()};
}

// The chance that a draft from q's row is accepted under p's, at temperature 1.
double Overlap(absl::Span<const float> p, absl::Span<const float> q) {
  double p_sum = 0;
  double q_sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    p_sum += std::exp(p[i]);
    q_sum += std::exp(q[i]);
  }
  double overlap = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    overlap += std::min(std::exp(p[i]) / p_sum, std::exp(q[i]) / q_sum);
  }
  return overlap;
}

TEST(SimulatedLmTest, APassTakesItsTimeAndARowsTimeForEachToken) {
  Fixture fixture;
  const auto before = SimulatedLm::Clock::now();
  fixture.Run({1, 2, 3, 4}, 1);
  const auto after = SimulatedLm::Clock::now();
  ASSERT_EQ(fixture.wakes.size(), 1U);
  EXPECT_GE(fixture.wakes[0], before + milliseconds(26));
  EXPECT_LE(fixture.wakes[0], after + milliseconds(26));
}

TEST(SimulatedLmTest, ManyRowsAtOnceAreTheRowsOneByOne) {
  Fixture together;
  Fixture apart;
  const LogitRows rows = together.Run({7, 8, 9}, 3);
  for (int i = 0; i < 3; ++i) {
    const LogitRows row = apart.Run({7 + i}, 1, /*cached_length=*/i);
    EXPECT_EQ(ToVector(row.Row(0)), ToVector(rows.Row(i))) << i;
  }
}

TEST(SimulatedLmTest, ACutCacheIsThatOfTheKeptTokens) {
  Fixture fixture;
  const LogitRows straight = fixture.Run({7, 8, 9}, 1);
  fixture.Run({5, 6}, 1, /*cached_length=*/1);
  const LogitRows again = fixture.Run({8, 9}, 1, /*cached_length=*/1);
  EXPECT_EQ(ToVector(straight.Row(0)), ToVector(again.Row(0)));
}

TEST(SimulatedLmTest, ADraftIsAcceptedInTheShareOfContextsThatWasAskedFor) {
  constexpr int kLength = 20000;
  Fixture target;
  Fixture draft(/*acceptance=*/0.8);
  TokenSeq tokens;
  for (int i = 0; i < kLength; ++i) tokens.push_back((i * 31) % 256);
  const LogitRows p = target.Run(tokens, kLength);
  const LogitRows q = draft.Run(tokens, kLength);
  int num_equal = 0;
  for (int i = 0; i < kLength; ++i) {
    const double overlap = Overlap(p.Row(i), q.Row(i));
    // Nothing in between: so the share holds at every temperature.
    ASSERT_TRUE(overlap < 1e-9 || overlap > 1 - 1e-6) << overlap;
    num_equal += overlap > 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(num_equal, 0.8 * kLength, 4 * std::sqrt(0.16 * kLength));
}

TEST(SimulatedLmTest, ARefusedDraftsReplacementsComeNextInTheShareAskedFor) {
  constexpr int kLength = 20000;
  Fixture target;
  Fixture draft(/*acceptance=*/0.5, /*outcome_hit=*/0.8);
  TokenSeq tokens;
  for (int i = 0; i < kLength; ++i) tokens.push_back((i * 31) % 256);
  const LogitRows p = target.Run(tokens, kLength);
  const LogitRows q = draft.Run(tokens, kLength);
  int num_refused = 0;
  int num_next = 0;
  for (int i = 0; i < kLength; ++i) {
    const double overlap = Overlap(p.Row(i), q.Row(i));
    ASSERT_TRUE(overlap < 1e-9 || overlap > 1 - 1e-6) << overlap;
    if (overlap > 0.5) continue;
    ++num_refused;
    std::vector<float> row = ToVector(q.Row(i));
    const auto target_row = ToVector(p.Row(i));
    row[std::max_element(row.begin(), row.end()) - row.begin()] = -1e6F;
    const auto next = std::max_element(row.begin(), row.end()) - row.begin();
    num_next += target_row[next] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(num_refused, 0.5 * kLength, 4 * std::sqrt(0.25 * kLength));
  EXPECT_NEAR(num_next, 0.8 * num_refused, 4 * std::sqrt(0.16 * num_refused));
}

TEST(SimulatedLmTest, ACopiedBlockGoesOnAsTheOneItIsACopyOf) {
  Fixture fixture;
  const TokenSeq text = {7, 8, 9};
  const LogitRows straight = fixture.Run(text, 1);
  fixture.Run({7, 8, 5, 6}, 1);
  const std::vector<KvBlockId> branch = {3};
  const auto rows =
      fixture.model.Extend({{.blocks = branch,
                             .cached_length = 2,
                             .tokens = absl::MakeConstSpan(text).last(1),
                             .num_rows = 1,
                             .copied_block = fixture.table[0]}});
  ASSERT_TRUE(rows[0].ok());
  EXPECT_EQ(ToVector(straight.Row(0)), ToVector(rows[0]->Row(0)));
}

TEST(SimulatedLmTest, APassOfManySessionsTakesTheTimeOfAllTheirRows) {
  Fixture fixture;
  const TokenSeq tokens = {1, 2, 3, 4};
  const auto table = absl::MakeConstSpan(fixture.table);
  const auto before = SimulatedLm::Clock::now();
  fixture.model.Extend(
      {{.blocks = table.first(1), .tokens = tokens, .num_rows = 1},
       {.blocks = table.last(1), .tokens = tokens, .num_rows = 4}});
  const auto after = SimulatedLm::Clock::now();
  ASSERT_EQ(fixture.wakes.size(), 1U);
  EXPECT_GE(fixture.wakes[0], before + milliseconds(27));
  EXPECT_LE(fixture.wakes[0], after + milliseconds(27));
}

TEST(SimulatedLmTest, GivesOutNoMoreBlocksThanItHasMemoryFor) {
  SimulatedLm model({.kv_bytes = 1000});
  const int64_t block = model.info().kv_block_bytes;
  EXPECT_EQ(model.AllocateKvBlocks(static_cast<int>(1000 / block) + 1).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(model.AllocateKvBlocks(static_cast<int>(1000 / block)).ok());
  EXPECT_LT(model.AvailableKvBytes(), block);
}

}  // namespace
}  // namespace outrider
