// SPDX-License-Identifier: Apache-2.0
// Bias, penalties and min-p: the joint law over production code against the
// plain decoder, which computes them on its own, in every reply format; and
// mistakes in them that these gates must catch. Each row of a block has a
// history of its own, which a test of one token a round would never see. Built
// with OUTRIDER_MUTANTS.
#include <cmath>
#include <iostream>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sampling/process.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/sabotage.h"
#include "tests/exactness/scoped_mutant.h"

namespace outrider::testing::processing {
namespace {

constexpr int kLength = 4;

// Each option that changes the law, alone and with its neighbours in the order.
std::vector<SamplingParams> AllProcessings() {
  std::vector<SamplingParams> all = {
      {.min_p = 0.3},
      {.temperature = 1.3, .top_p = 0.8, .min_p = 0.2},
      {.repetition_penalty = 1.6},
      {.repetition_penalty = 0.6},
      {.presence_penalty = 0.9},
      {.frequency_penalty = 0.7},
      {.frequency_penalty = -0.7},
      {.logit_bias = {{0, 1.2}, {2, -0.8}}},
      // No more: what has next to no mass is lost where uniforms are shared.
      {.logit_bias = {{1, -100}}},
      {.temperature = 0.8,
       .top_k = 3,
       .top_p = 0.9,
       .min_p = 0.05,
       .repetition_penalty = 1.4,
       .presence_penalty = 0.5,
       .frequency_penalty = 0.3,
       .logit_bias = {{0, -0.5}, {3, 1.0}}}};
  // The same at temperature 0, where only the argmax is left of each.
  const size_t num_drawn = all.size();
  for (size_t i = 0; i < num_drawn; ++i) {
    all.push_back(all[i]);
    all.back().temperature = 0;
  }
  return all;
}

std::string Describe(const ClusterConfig& config) {
  const SamplingParams& sampling = config.sampling;
  std::string text = absl::StrCat(
      "T ", sampling.temperature, ", min-p ", sampling.min_p, ", repetition ",
      sampling.repetition_penalty, ", presence ", sampling.presence_penalty,
      ", frequency ", sampling.frequency_penalty, ", format ",
      static_cast<int>(config.reply_format), ", K ", config.draft_lengths[0],
      ", bias");
  for (const LogitBias& entry : sampling.logit_bias) {
    absl::StrAppend(&text, " ", entry.id, ":", entry.bias);
  }
  return text;
}

void ExpectExact(ClusterConfig config, const ToyModel& model, int length) {
  SCOPED_TRACE(Describe(config));
  // A SPARSE row's tail token is drawn whether or not it will be read.
  if (config.reply_format == ReplyFormat::kSparse) {
    config.reuse = EnumeratingSource::Reuse::kShareUniform;
  }
  const Enumeration result = Enumerate(config, model, length);
  ExpectLaw(result, PlainLaw(model, config.sampling, {kToyPrompt}, length, {}));
  EXPECT_EQ(result.num_misses, 0);
}

TEST(ProcessingTest, TheLawIsTheTargetsForEveryDrafter) {
  for (const SamplingParams& sampling : AllProcessings()) {
    for (const DrafterKind drafter :
         {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
      const ToyModel model(4, drafter);
      ClusterConfig config;
      config.sampling = sampling;
      config.drafting.support_size = 2;
      config.draft_lengths = {drafter == DrafterKind::kReversed ? 3 : 2};
      ExpectExact(std::move(config), model, kLength);
    }
  }
}

// The verifier keeps the history itself where it judges.
TEST(ProcessingTest, TheLawIsTheTargetsInEveryReplyFormat) {
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    for (const SamplingParams& sampling : AllProcessings()) {
      ClusterConfig config;
      config.sampling = sampling;
      config.drafting.support_size = 2;
      // The second round judges what the first one's drafts have counted. Tails
      // that nobody reads are drawn in SPARSE: leaves for one token less.
      const bool sparse = format == ReplyFormat::kSparse;
      config.draft_lengths = {sparse ? 1 : 2, 1};
      config.reply_format = format;
      ExpectExact(std::move(config), FourWords(),
                  sparse ? kLength - 1 : kLength);
    }
  }
}

// What the mutants are tried on: all that looks at the history, and a bias that
// changes which tokens survive top-k.
const SamplingParams kPenalised = {.temperature = 0.8,
                                   .top_k = 3,
                                   .repetition_penalty = 1.7,
                                   .presence_penalty = 0.6,
                                   .frequency_penalty = 0.4,
                                   .logit_bias = {{1, -0.9}, {2, 1.1}}};

// P3: the bias moves probabilities, but not which tokens top-k keeps.
Distribution BiasAfterTopK(absl::Span<const float> logits,
                           const TokenHistory& history) {
  SamplingParams before = kPenalised;
  before.logit_bias = {};
  const Distribution cut = *Process(logits, before, history);
  std::vector<double> weights(cut.weights().begin(), cut.weights().end());
  for (const LogitBias& entry : kPenalised.logit_bias) {
    for (size_t i = 0; i < weights.size(); ++i) {
      if (cut.support()[i] != entry.id) continue;
      weights[i] *= std::exp(entry.bias / kPenalised.temperature);
    }
  }
  return Distribution::FromSorted({cut.support().begin(), cut.support().end()},
                                  std::move(weights));
}

// P6: tokens are cut by the raw row, and penalised afterwards.
Distribution PenaltiesAfterTopK(absl::Span<const float> logits,
                                const TokenHistory& history) {
  const Distribution kept =
      *Process(logits, {.top_k = kPenalised.top_k}, history);
  std::vector<float> masked(logits.size(),
                            -std::numeric_limits<float>::infinity());
  for (const TokenId id : kept.support()) masked[id] = logits[id];
  return *Process(masked, kPenalised, history);
}

struct ProcessingMutant {
  std::string id;
  double figure = 0;  // joint total variation with K = 2
  Mutant mutant = Mutant::kNone;
  Sabotage sabotage = {};
  ReplyFormat format = ReplyFormat::kFull;
};

void PrintTo(const ProcessingMutant& mutant, std::ostream* os) {
  *os << mutant.id;
}

std::vector<ProcessingMutant> AllMutants() {
  return {
      {"P1_DraftsIgnored", 2.94e-1, Mutant::kP1},
      {"P2_PromptCounted", 3.18e-1, Mutant::kP2},
      {"P3_BiasAfterTopK", 1.80e-1, Mutant::kNone,
       WithRule({.process = BiasAfterTopK}, kPenalised)},
      {"P4_RepetitionOfGeneratedOnly", 5.56e-2, Mutant::kP4},
      {"P5_FrequencyCountedOnce", 1.35e-2, Mutant::kP5},
      {"P6_PenaltiesAfterTopK", 8.23e-2, Mutant::kNone,
       WithRule({.process = PenaltiesAfterTopK}, kPenalised)},
  };
}

// The switches once more where the verifier keeps the history: the same
// mistakes, the same figures.
std::vector<ProcessingMutant> MutantsWhereTheVerifierJudges() {
  std::vector<ProcessingMutant> mutants = AllMutants();
  std::erase_if(mutants, [](const ProcessingMutant& mutant) {
    return mutant.mutant == Mutant::kNone;
  });
  for (ProcessingMutant& mutant : mutants) {
    mutant.format = ReplyFormat::kTokens;
  }
  return mutants;
}

class ProcessingMutantsTest
    : public ::testing::TestWithParam<ProcessingMutant> {};

TEST_P(ProcessingMutantsTest, IsCaughtWithItsFigure) {
  const ProcessingMutant& c = GetParam();
  const ScopedMutant mutant(c.mutant);
  ClusterConfig config;
  config.sampling = kPenalised;
  config.draft_lengths = {2};
  config.reply_format = c.format;
  config.sabotage = c.sabotage;
  const Enumeration result = Enumerate(config, FourWords(), kLength);
  const Difference joint = Compare(
      result.law, PlainLaw(FourWords(), kPenalised, {kToyPrompt}, kLength, {}));
  std::cout << c.id << ": joint TV " << joint.total_variation << " ("
            << c.figure << ")\n";
  EXPECT_GT(joint.max_difference, kTolerance) << "the mutant survives";
  EXPECT_NEAR(joint.total_variation, c.figure, 0.02 * c.figure);
  EXPECT_EQ(result.problem, "");
}
std::string NameOf(const ::testing::TestParamInfo<ProcessingMutant>& info) {
  return info.param.id;
}
INSTANTIATE_TEST_SUITE_P(All, ProcessingMutantsTest,
                         ::testing::ValuesIn(AllMutants()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tokens, ProcessingMutantsTest,
                         ::testing::ValuesIn(MutantsWhereTheVerifierJudges()),
                         NameOf);

// The other side of every figure above: without a mutant there is none.
TEST(NoProcessingMutantTest, WithoutAMutantThereIsNothingToCatch) {
  ClusterConfig config;
  config.sampling = kPenalised;
  config.draft_lengths = {2};
  ExpectExact(config, FourWords(), kLength);
  config.reply_format = ReplyFormat::kTokens;
  ExpectExact(std::move(config), FourWords(), kLength);
}

}  // namespace
}  // namespace outrider::testing::processing
