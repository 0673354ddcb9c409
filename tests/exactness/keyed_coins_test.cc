// SPDX-License-Identifier: Apache-2.0
// Coins that are keyed by their position alone come back after a refusal before
// them. Where something that saw the discarded draft decides whether the
// position is drafted again, they are no longer uniform. Built with
// OUTRIDER_MUTANTS; equal keys see the same uniform number, as in production.
#include <algorithm>
#include <functional>
#include <iostream>

#include "core/base/mutant.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::keyed_coins {
namespace {

constexpr int kLength = 3;

using Policy = std::function<int(const RoundView&, int k)>;

// The first draft that a refusal before it threw away; -1: there was none.
int FirstDiscarded(const RoundView& view) {
  if (view.verdict == nullptr) return -1;
  const int place = view.verdict->num_accepted + 1;
  return place < view.draft->length() ? place : -1;
}

// C1: a plain round after a discarded draft token 0.
int PlainAfterDiscardedZero(const RoundView& view, int k) {
  const int place = FirstDiscarded(view);
  return place >= 0 && view.draft->tokens[place] == 0 ? 0 : k;
}

// C2: a plain round where the row after a discarded draft was unsure.
int PlainAfterUnsureRow(const RoundView& view, int k) {
  const int place = FirstDiscarded(view);
  if (place < 0 || place + 1 >= view.draft->length()) return k;
  const Distribution& q = view.draft->distributions[place + 1];
  const double best =
      *std::max_element(q.weights().begin(), q.weights().end()) / q.total();
  return best < 0.6 ? 0 : k;
}

double TotalVariation(Mutant mutant, const Policy& policy, int k) {
  const ToyModel model(3, DrafterKind::kReversed);
  const ClusterConfig config = {
      .sampling = {.temperature = 1},
      .draft_lengths = {k},
      .reuse = EnumeratingSource::Reuse::kShareUniform,
      .sabotage = {.draft_length = policy}};
  active_mutant = mutant;
  const Enumeration result = Enumerate(config, model, kLength);
  active_mutant = Mutant::kNone;
  EXPECT_EQ(result.problem, "");
  const Difference joint = Compare(
      result.law, PlainLaw(model, config.sampling, {kToyPrompt}, kLength, {}));
  EXPECT_LE(joint.mass_error, kTolerance);
  std::cout << "joint TV " << joint.total_variation << ", " << result.num_leaves
            << " leaves\n";
  return joint.total_variation;
}

TEST(KeyedCoinsTest, DraftCoinsKeyedByStepAreExactWhateverThePolicySees) {
  EXPECT_LE(TotalVariation(Mutant::kNone, PlainAfterDiscardedZero, 2),
            kTolerance);
  EXPECT_LE(TotalVariation(Mutant::kNone, PlainAfterUnsureRow, 3), kTolerance);
}

TEST(KeyedCoinsTest, C1PositionKeyedCoinsAreCaughtByADiscardedToken) {
  EXPECT_GT(TotalVariation(Mutant::kC1, PlainAfterDiscardedZero, 2), 1e-3);
}

TEST(KeyedCoinsTest, C2PositionKeyedCoinsAreCaughtByADiscardedRow) {
  EXPECT_GT(TotalVariation(Mutant::kC1, PlainAfterUnsureRow, 3), 1e-3);
}

// Reuse alone is harmless: without a look at the discarded draft the coin is
// still uniform. This is what makes the mutant so easy to miss.
TEST(KeyedCoinsTest, PositionKeyedCoinsAreExactWhereNothingLooksAtTheDraft) {
  const Policy fixed = [](const RoundView&, int k) { return k; };
  EXPECT_LE(TotalVariation(Mutant::kC1, fixed, 2), kTolerance);
}

}  // namespace
}  // namespace outrider::testing::keyed_coins
