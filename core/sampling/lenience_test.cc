// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/lenience.h"

#include <cmath>
#include <vector>

#include "core/sampling/process.h"
#include "core/sampling/rejection.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::EnumeratingSource;
using ::outrider::testing::IsOk;
using ::outrider::testing::kInfinity;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;

// Probabilities .1 .4 .2 .3.
const std::vector<float> kRow = {
    static_cast<float>(std::log(0.1)), static_cast<float>(std::log(0.4)),
    static_cast<float>(std::log(0.2)), static_cast<float>(std::log(0.3))};

// The token that has all the mass of the row which judges `draft`.
TokenId Judged(const SamplingParams& params, TokenId draft,
               const TokenHistory& history = {},
               const std::vector<float>& logits = kRow) {
  const auto row = JudgingRow(*Process(logits, params, history), draft, logits,
                              params, history);
  EXPECT_THAT(row, IsOk());
  EXPECT_EQ(row->support().size(), 1u);
  return row->support()[0];
}

TEST(LenienceTest, AtTemperatureZeroADraftStandsByItsShareOfTheHighest) {
  // Of the highest, token 3 has .75, token 2 .5, token 0 .25.
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.7}, 3), 3);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.8}, 3), 1);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.7}, 2), 1);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.49}, 2), 2);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.2}, 0), 0);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.2}, 1), 1);
}

TEST(LenienceTest, OneIsExactAlsoWhereTheHighestAreEqual) {
  const std::vector<float> tied = {1, 5, 5, 2};
  EXPECT_EQ(Judged({.temperature = 0}, 2, {}, tied), 1);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 1}, 2, {}, tied), 1);
  EXPECT_EQ(Judged({.temperature = 0, .lossy_lenience = 0.999}, 2, {}, tied),
            2);
}

TEST(LenienceTest, BiasAndPenaltiesCountButNoCut) {
  // Nothing is cut; the bias makes token 0 as probable as token 3.
  const TokenSeq generated = {1};
  const TokenHistory history = {.committed = generated};
  const SamplingParams params = {.temperature = 0,
                                 .top_k = 1,
                                 .top_p = 0.1,
                                 .min_p = 1,
                                 .presence_penalty = 2,
                                 .logit_bias = {{0, std::log(2.9)}},
                                 .lossy_lenience = 0.9};
  EXPECT_EQ(Judged(params, 0, history), 0);
  EXPECT_EQ(Judged(params, 2, history), 3);
  EXPECT_EQ(Judged(params, 1, history), 3);  // .4 / e^2
}

TEST(LenienceTest, AMaskedTokenNeverStands) {
  const std::vector<float> logits = {-kInfinity, 1, 0, -kInfinity};
  for (const double lenience : {0.5, 5e-324}) {
    EXPECT_EQ(
        Judged({.temperature = 0, .lossy_lenience = lenience}, 0, {}, logits),
        1);
  }
}

TEST(LenienceTest, AboveTemperatureZeroTheRowStaysAsItIs) {
  const SamplingParams params = {.lossy_lenience = 0.1};
  const Distribution row = *Process(kRow, params, {});
  const auto judging = JudgingRow(row, 0, kRow, params, {});
  ASSERT_THAT(judging, IsOk());
  EXPECT_EQ(judging->weights(), row.weights());
}

TEST(LenienceTest, ADraftThatTheRowLacksIsRefused) {
  const SamplingParams params = {.temperature = 0, .lossy_lenience = 0.1};
  for (const TokenId draft : {-1, 4}) {
    EXPECT_THAT(JudgingRow(Distribution::OneHot(1), draft, kRow, params, {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

// Leviathan et al., A.5: accepted with min(1, p / (l q)), replaced from the
// residual of p and q themselves.
TEST(LenienceTest, TheLawOfOneTokenIsWhatTheFormulaSays) {
  const Distribution p =
      Distribution::FromSorted({0, 1, 2, 3}, {0.1, 0.2, 0.3, 0.4});
  const Distribution q =
      Distribution::FromSorted({0, 1, 2, 3}, {0.4, 0.3, 0.2, 0.1});
  constexpr double kLenience = 0.5;
  std::vector<double> law(4, 0.0);
  EnumeratingSource source;
  while (source.NextTrace()) {
    const size_t place = source.Categorical({Purpose::kDraft, 5}, q.weights());
    const Draft draft = {
        .start = 5, .tokens = {q.support()[place]}, .distributions = {q}};
    const std::vector<TargetRow> target = {
        TargetRow::FromDense(p, q.support(), 5, source),
        TargetRow::FromDense(p, {}, 6, source)};
    const Verdict verdict =
        RejectionRule(kLenience).Judge(draft, target, source);
    law[verdict.num_accepted > 0 ? draft.tokens[0] : verdict.next_token] +=
        source.probability();
  }
  // Accepted: .2, .3, .2, .1; refused .2, of which .1/.4 go to 2, .3/.4 to 3.
  EXPECT_THAT(law, ElementsAre(::testing::DoubleNear(0.2, 1e-15),
                               ::testing::DoubleNear(0.3, 1e-15),
                               ::testing::DoubleNear(0.25, 1e-15),
                               ::testing::DoubleNear(0.25, 1e-15)));
}

TEST(LenienceTest, TheLeastLenienceAcceptsAllThatIsPossible) {
  EnumeratingSource source;
  ASSERT_TRUE(source.NextTrace());
  const Distribution q = Distribution::FromSorted({0, 1}, {1e-300, 1});
  for (const TokenId x : {0, 1}) {
    const Distribution p = Distribution::OneHot(0);
    const std::vector<TargetRow> target = {
        TargetRow::FromDense(p, q.support(), 5, source),
        TargetRow::FromDense(p, {}, 6, source)};
    const Draft draft = {.start = 5, .tokens = {x}, .distributions = {q}};
    EXPECT_EQ(RejectionRule(5e-324).Judge(draft, target, source).num_accepted,
              x == 0 ? 1 : 0);
  }
}

}  // namespace
}  // namespace outrider
