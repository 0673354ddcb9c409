// SPDX-License-Identifier: Apache-2.0
// Every mutant is a plausible mistake, and every one must be caught by the
// gates of output_law_test: they would be worth nothing otherwise. Built with
// OUTRIDER_MUTANTS.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/mutant_cases.h"
#include "tests/exactness/scoped_mutant.h"

namespace outrider::testing::mutants {
namespace {

MutantCase InFormat(MutantCase mutant, ReplyFormat format) {
  const bool is_sparse = format == ReplyFormat::kSparse;
  const bool shows_late = mutant.id == "B1";
  mutant.id += is_sparse ? " SPARSE" : " TOKENS";
  mutant.figure_k3 = 0;
  mutant.format = format;
  if (is_sparse) {
    // A tail is drawn whether or not it will be read: too many leaves for the
    // length that the figures are of.
    mutant.reuse = Reuse::kShareUniform;
    mutant.length = shows_late ? 3 : 2;
    mutant.figure_k2 = 0;
  }
  return mutant;
}

// The production path's switches once more, where the verifier draws tails
// (SPARSE) or judges (TOKENS): the same mistakes, the same figures.
std::vector<MutantCase> MutantsOfReplyFormats() {
  std::vector<MutantCase> cases;
  for (const auto& family : {MutantsOfDraft(), MutantsOfRule(), MutantsOfTail(),
                             MutantsOfEnd(), MutantsOfBlock()}) {
    for (const MutantCase& mutant : family) {
      if (mutant.mutant == Mutant::kNone) continue;
      cases.push_back(InFormat(mutant, ReplyFormat::kTokens));
      // It shows at the fourth token only, which has too many leaves there.
      if (mutant.id == "M14 EOS 3") continue;
      cases.push_back(InFormat(mutant, ReplyFormat::kSparse));
    }
  }
  return cases;
}

Enumeration EnumerateMutant(const MutantCase& c, int k) {
  const ScopedMutant mutant(c.mutant);
  return Enumerate({.sampling = kFourWordsSampling,
                    .rule = c.rule,
                    .drafting = {.support_size = c.support_size,
                                 .round_weights = c.round_weights},
                    .reply_format = c.format,
                    .draft_lengths = {k},
                    .eos_ids = c.eos_ids,
                    .reuse = c.reuse,
                    .sabotage = c.sabotage},
                   FourWords(), c.length);
}

void ExpectCaught(const MutantCase& c, int k, double figure) {
  const Enumeration result = EnumerateMutant(c, k);
  const Law plain = PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt},
                             c.length, c.eos_ids);
  const Difference joint = Compare(result.law, plain);
  const Difference first = Compare(FirstToken(result.law), FirstToken(plain));
  std::cout << c.id << " K " << k << ": joint TV " << joint.total_variation
            << " (" << figure << "), first token " << first.total_variation
            << ", impossible mass " << joint.impossible_mass << ", "
            << result.num_leaves << " leaves\n";

  EXPECT_TRUE(joint.max_difference > kTolerance || joint.impossible_mass > 0)
      << "the mutant survives";
  if (figure > kTolerance) {
    EXPECT_NEAR(joint.total_variation, figure, 0.02 * figure);
  }
  if (c.first_token_is_right) {
    EXPECT_LE(first.total_variation, kTolerance);
  }
  // A miss would mean that the protocol found it, not the law.
  EXPECT_EQ(result.num_misses, 0);
  EXPECT_EQ(result.problem, "");
}

class MutantsTest : public ::testing::TestWithParam<MutantCase> {};

TEST_P(MutantsTest, IsCaughtWithItsFigure) {
  const MutantCase& c = GetParam();
  if (c.figure_k3 > 0) ExpectCaught(c, /*k=*/3, c.figure_k3);
  ExpectCaught(c, /*k=*/2, c.figure_k2);
}

std::string NameOf(const ::testing::TestParamInfo<MutantCase>& info) {
  std::string name = info.param.id;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Draft, MutantsTest,
                         ::testing::ValuesIn(MutantsOfDraft()), NameOf);
INSTANTIATE_TEST_SUITE_P(Rule, MutantsTest,
                         ::testing::ValuesIn(MutantsOfRule()), NameOf);
INSTANTIATE_TEST_SUITE_P(Cache, MutantsTest,
                         ::testing::ValuesIn(MutantsOfCache()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tail, MutantsTest,
                         ::testing::ValuesIn(MutantsOfTail()), NameOf);
INSTANTIATE_TEST_SUITE_P(End, MutantsTest, ::testing::ValuesIn(MutantsOfEnd()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Block, MutantsTest,
                         ::testing::ValuesIn(MutantsOfBlock()), NameOf);
INSTANTIATE_TEST_SUITE_P(ReplyFormats, MutantsTest,
                         ::testing::ValuesIn(MutantsOfReplyFormats()), NameOf);

// The other side of every figure above: without a mutant there is none.
void ExpectExact(const MutantCase& c) {
  const Enumeration result = EnumerateMutant(c, /*k=*/2);
  const Difference joint =
      Compare(result.law, PlainLaw(FourWords(), kFourWordsSampling,
                                   {kToyPrompt}, c.length, c.eos_ids));
  EXPECT_LE(joint.max_difference, kTolerance);
  EXPECT_EQ(joint.impossible_mass, 0);
  EXPECT_EQ(result.problem, "");
}
TEST(NoMutantTest, IsExactInEverySetting) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const int support_size : {0, 2}) {
      for (const std::vector<TokenId>& eos_ids :
           std::vector<std::vector<TokenId>>{{}, {0}, {3}}) {
        MutantCase c = {.id = "none",
                        .support_size = support_size,
                        .eos_ids = eos_ids,
                        .rule = rule};
        ExpectExact(c);
        c.format = ReplyFormat::kTokens;
        ExpectExact(c);
        c.format = ReplyFormat::kSparse;
        c.reuse = Reuse::kShareUniform;
        c.length = rule == RuleKind::kBlock ? 3 : 2;
        ExpectExact(c);
      }
    }
  }
}

// Two coins under one key are found without a look at the law.
TEST(LedgerTest, SeesTheKeyThatS7AsksTwice) {
  EXPECT_NE(EnumerateMutant(
                {.id = "S7", .mutant = Mutant::kS7, .support_size = 2}, /*k=*/2)
                .problem,
            "");
}
TEST(LedgerTest, SeesTheKeyThatC1AsksTwice) {
  EXPECT_NE(
      EnumerateMutant({.id = "C1", .mutant = Mutant::kC1}, /*k=*/2).problem,
      "");
}

// Where the published figures of M14 come from.
TEST(PlainDecoderTest, AnEngineThatNeverStopsIsFarFromTheLaw) {
  const Law endless =
      PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {});
  const auto figure = [&](TokenId eos) {
    return Compare(endless, PlainLaw(FourWords(), kFourWordsSampling,
                                     {kToyPrompt}, kLength, {eos}))
        .total_variation;
  };
  EXPECT_NEAR(figure(3), 1.86e-1, 0.02 * 1.86e-1);
  EXPECT_NEAR(figure(0), 4.97e-1, 0.02 * 4.97e-1);
}

}  // namespace
}  // namespace outrider::testing::mutants
