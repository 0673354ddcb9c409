// SPDX-License-Identifier: Apache-2.0
// A verifier that goes on by itself where nothing is drafted: its tokens are
// those that a call each would have brought, in law and for each seed; and the
// mistakes that it could make are caught. Built with OUTRIDER_MUTANTS.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/testing/answer_on_host.h"
#include "gtest/gtest.h"
#include "tests/exactness/answered_law.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/scoped_mutant.h"

namespace outrider::testing::plain_runs {
namespace {

constexpr int kLength = 4;
constexpr int kRun = 3;

ClusterConfig With(std::vector<int> draft_lengths,
                   RuleKind rule = RuleKind::kRejection) {
  return {.sampling = kFourWordsSampling,
          .rule = rule,
          .reply_format = ReplyFormat::kTokens,
          .draft_lengths = std::move(draft_lengths),
          .run_length = kRun};
}

TEST(PlainRunsTest, TheLawIsTheTargetsBetweenRoundsThatDraft) {
  LawCoverage coverage;
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const auto& script : std::vector<std::vector<int>>{{0}, {2, 0}}) {
      for (const int num_deliveries : {1, 2}) {
        for (const std::vector<TokenId>& eos_ids :
             std::vector<std::vector<TokenId>>{{}, {0}, {3}}) {
          ClusterConfig config = With(script, rule);
          config.num_deliveries = num_deliveries;
          config.eos_ids = eos_ids;
          coverage.Expect({.config = config, .length = kLength});
        }
      }
    }
  }
}

// The law where a verifier is lost with its reply if the run has this token:
// which tokens are drawn again must not follow from what they were.
Enumeration WithAVerifierThatIsLostAt(TokenId token) {
  ClusterConfig config = With({0, 0, 2});
  // A part of the run that is drawn otherwise asks its coins something else.
  config.reuse = EnumeratingSource::Reuse::kShareUniform;
  config.sabotage.is_verifier_lost =
      [token](ToyCluster&, const VerifyCall& call, const VerifyReply& reply) {
        const std::vector<TokenId>& more = reply.more_tokens;
        return !call.header.incarnation.is_none() &&
               std::find(more.begin(), more.end(), token) != more.end();
      };
  return Enumerate(config, FourWords(), kLength);
}

TEST(PlainRunsTest, TheLawIsTheTargetsIfARunDecidesWhetherItIsLost) {
  const Law target =
      PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {});
  ExpectLaw(WithAVerifierThatIsLostAt(0), target);
}

// The text of a seed, and how many rounds it took.
struct Text {
  TokenSeq tokens = {};
  int num_rounds = 0;
};
Text TextOf(const ClusterConfig& config, uint64_t seed) {
  ToyCluster cluster(config, FourWords(), seed);
  while (!cluster.session().is_complete()) {
    const absl::StatusOr<Verdict> verdict = cluster.Round();
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    if (!verdict.ok()) break;
  }
  const auto tokens = cluster.session().committed().tokens();
  return {.tokens = {tokens.begin(), tokens.end()},
          .num_rounds = cluster.num_rounds()};
}

// What it has had comes to be among the likeliest.
const SamplingParams kFavoursItsOwn = {.top_k = 2, .frequency_penalty = -1.5};

// A token at a time, and in runs; with a target that has whole rows, and with
// one that answers questions about them.
bool RunsHaveTheSameText(const SamplingParams& sampling) {
  bool are_same = true;
  for (const bool has_answers : {false, true}) {
    ClusterConfig config = With({0});
    config.sampling = sampling;
    config.max_length = 24;
    if (has_answers) {
      config.answer = [](const RowQuestion& question,
                         absl::Span<const float> logits) {
        return AnswerOnHost(question, logits, kFewTop);
      };
    }
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      config.run_length = 1;
      const Text alone = TextOf(config, seed);
      EXPECT_EQ(alone.num_rounds, 23);
      for (const int run_length : {2, 3, 16}) {
        config.run_length = run_length;
        const Text run = TextOf(config, seed);
        // The first call brings one token, and all runs are whole.
        are_same &= run.tokens == alone.tokens &&
                    run.num_rounds == 1 + (22 + run_length - 1) / run_length;
      }
    }
  }
  return are_same;
}

TEST(PlainRunsTest, ASeedHasTheSameTextInRuns) {
  EXPECT_TRUE(RunsHaveTheSameText(kFourWordsSampling));
  EXPECT_TRUE(RunsHaveTheSameText({.temperature = 0}));
  EXPECT_TRUE(RunsHaveTheSameText({.repetition_penalty = 1.6,
                                   .presence_penalty = 0.9,
                                   .frequency_penalty = 0.7}));
  EXPECT_TRUE(RunsHaveTheSameText(kFavoursItsOwn));
}

TEST(PlainRunsTest, NothingIsDrawnAfterAnEnd) {
  ClusterConfig config = With({0});
  config.run_length = 16;
  config.eos_ids = {0, 3};
  int num_ends = 0;
  config.sabotage.after_verify = [&](const VerifyCall& call,
                                     VerifyReply& reply) {
    EXPECT_EQ(call.end_tokens.empty(), call.max_more_tokens == 0);
    const TokenSeq& more = reply.more_tokens;
    const auto is_end = [](TokenId token) { return token == 0 || token == 3; };
    const auto end = std::find_if(more.begin(), more.end(), is_end);
    if (end != more.end()) {
      EXPECT_EQ(end + 1, more.end());
    }
    num_ends += end != more.end() ? 1 : 0;
    if (is_end(std::get<Verdict>(reply.outcome).next_token)) {
      EXPECT_TRUE(more.empty());
    }
    return absl::OkStatus();
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) TextOf(config, seed);
  EXPECT_GT(num_ends, 20);
}

TEST(PlainRunsMutantsTest, R1CoinsOfTheSamePlaceAreCaught) {
  const ScopedMutant scoped(Mutant::kR1);
  EXPECT_FALSE(RunsHaveTheSameText(kFourWordsSampling));
}
TEST(PlainRunsMutantsTest, R2APenaltyThatForgetsTheRunIsCaught) {
  const ScopedMutant scoped(Mutant::kR2);
  EXPECT_FALSE(RunsHaveTheSameText(kFavoursItsOwn));
}
TEST(PlainRunsMutantsTest, R3APartOfARunDrawnAgainIsCaught) {
  const ScopedMutant scoped(Mutant::kR3);
  const Enumeration result = WithAVerifierThatIsLostAt(0);
  EXPECT_EQ(result.problem, "");
  const Difference difference = Compare(
      result.law,
      PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {}));
  EXPECT_LE(difference.mass_error, kTolerance);
  EXPECT_GT(difference.total_variation, 1e-3);
}

}  // namespace
}  // namespace outrider::testing::plain_runs
