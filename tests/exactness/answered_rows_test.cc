// SPDX-License-Identifier: Apache-2.0
// A model that answers questions about its rows in place of them, as one on a
// device does: the law over production code is the target's, its replies are
// those of a model with whole rows, and mistakes in questions or answers are
// caught. Built with OUTRIDER_MUTANTS. The kernels' own arithmetic is
// device_rows_test.cc's matter.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/sampling/ask_rows.h"
#include "core/testing/answer_on_host.h"
#include "gtest/gtest.h"
#include "tests/exactness/answered_law.h"
#include "tests/exactness/scoped_mutant.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing::answered_rows {
namespace {

TableLm::Answer Answers(AnswerCounts& counts, int most_top = kMaxTopLogits) {
  return [&counts, most_top](const RowQuestion& question,
                             absl::Span<const float> logits) {
    auto answer = AnswerOnHost(question, logits, most_top);
    ++(answer.has_value() ? counts.num_answered : counts.num_undecided);
    return answer;
  };
}

TEST(AnsweredRowsLawTest, TheLawIsTheTargetsWhetherOrNotAnswersDecide) {
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    for (const int most_top : {kFewTop, kMaxTopLogits}) {
      AnswerCounts counts;
      for (const SamplingParams& sampling : CutProcessings()) {
        const Difference difference = AnsweredDifference(
            AnsweredConfig(sampling, format, Answers(counts, most_top)));
        EXPECT_LE(difference.max_difference, kTolerance)
            << "T " << sampling.temperature << ", top-k " << sampling.top_k
            << ", top-p " << sampling.top_p << ", min-p " << sampling.min_p;
        EXPECT_EQ(difference.impossible_mass, 0);
      }
      EXPECT_GT(counts.num_answered, 0);
      EXPECT_EQ(counts.num_undecided > 0, most_top == kFewTop);
    }
  }
}

// One Verify, by the coins of a seed.
struct VerifyCase {
  std::string name = {};
  SamplingParams sampling = {};
  RuleKind rule = RuleKind::kRejection;
  ReplyFormat format = ReplyFormat::kTokens;
  std::optional<LogprobsOptions> logprobs = {};
};
void PrintTo(const VerifyCase& c, std::ostream* os) { *os << c.name; }

const ToyModel& FiveWords() {
  static const ToyModel model(5, DrafterKind::kCorrelated);
  return model;
}

VerifyCall CallOf(const VerifyCase& c, uint64_t seed) {
  VerifyCall call = {
      .header = {.session = {.bytes = {1}},
                 .step = 1,
                 .delta = {.append_tokens = {0, static_cast<TokenId>(seed % 5),
                                             static_cast<TokenId>(seed % 3)}}},
      .draft_tokens = {static_cast<TokenId>(seed % 2 + 1),
                       static_cast<TokenId>(seed % 3 + 1)},
      .reply_format = c.format,
      .sampling = c.sampling,
      .seed = seed,
      .prompt_length = 2,
      .rule = c.rule,
      .logprobs = c.logprobs};
  const bool has_rows = !IsGreedy(c.sampling) && c.rule != RuleKind::kCoupled;
  for (int i = 0; i < 2; ++i) {
    if (c.format == ReplyFormat::kSparse) call.supports.push_back({1, 2, 3});
    if (c.format == ReplyFormat::kTokens && has_rows) {
      call.draft_rows.push_back(
          Distribution::FromSorted({1, 2, 3}, {0.5, 0.2, 0.3}));
    }
  }
  return call;
}

VerifyReply ReplyOf(const VerifyCall& call, const TableLm::Answer& answer) {
  const auto node = MakeVerifyNode({.table =
                                        [](absl::Span<const TokenId> context) {
                                          return FiveWords().Target(context);
                                        },
                                    .vocab_size = 5,
                                    .answer = answer});
  const auto reply = node->Run(call, ContentDigest(call));
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.value_or(VerifyReply());
}

bool AreEqual(const TargetRow& a, const TargetRow& b) {
  if (a.support() != b.support()) return false;
  for (size_t i = 0; i < a.probabilities().size(); ++i) {
    if (std::abs(a.probabilities()[i] - b.probabilities()[i]) > kTolerance) {
      return false;
    }
  }
  return std::abs(a.tail_mass() - b.tail_mass()) <= kTolerance &&
         (a.tail_mass() == 0 || a.drawn_token() == b.drawn_token());
}

bool AreEqual(const RowScores& a, const RowScores& b) {
  const RowLogprobs own = ToLogprobs(a), other = ToLogprobs(b);
  const auto are_near = [](double x, double y) {
    return x == y || std::abs(x - y) <= kTolerance;
  };
  return std::equal(own.tokens.begin(), own.tokens.end(), other.tokens.begin(),
                    other.tokens.end(), are_near) &&
         std::equal(own.top.begin(), own.top.end(), other.top.begin(),
                    other.top.end(), [&](const auto& x, const auto& y) {
                      return x.id == y.id && are_near(x.logprob, y.logprob);
                    });
}

bool AreEqual(const VerifyReply& a, const VerifyReply& b) {
  if (!std::equal(a.logprobs.begin(), a.logprobs.end(), b.logprobs.begin(),
                  b.logprobs.end(), [](const auto& scores, const auto& other) {
                    return AreEqual(scores, other);
                  })) {
    return false;
  }
  if (const auto* verdict = std::get_if<Verdict>(&a.outcome)) {
    return *verdict == std::get<Verdict>(b.outcome);
  }
  const auto& rows = std::get<std::vector<TargetRow>>(a.outcome);
  const auto& others = std::get<std::vector<TargetRow>>(b.outcome);
  return std::equal(rows.begin(), rows.end(), others.begin(), others.end(),
                    [](const TargetRow& row, const TargetRow& other) {
                      return AreEqual(row, other);
                    });
}

// Seeds whose replies with and without answers differ, of so many.
constexpr uint64_t kNumSeeds = 60;
int NumDifferent(const VerifyCase& c, const TableLm::Answer& answer) {
  int num_different = 0;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    const VerifyCall call = CallOf(c, seed);
    num_different += AreEqual(ReplyOf(call, {}), ReplyOf(call, answer)) ? 0 : 1;
  }
  return num_different;
}

std::vector<VerifyCase> VerifyCases() {
  std::vector<VerifyCase> cases;
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    const std::string name =
        format == ReplyFormat::kSparse ? "Sparse" : "Tokens";
    cases.push_back({name + "Plain", {}, RuleKind::kRejection, format});
    cases.push_back(
        {name + "Cool", {.temperature = 0.6}, RuleKind::kRejection, format});
    cases.push_back(
        {name + "Greedy", {.temperature = 0}, RuleKind::kRejection, format});
    cases.push_back({name + "Block", {}, RuleKind::kBlock, format});
    cases.push_back({name + "TopP", {.top_p = 0.7}, RuleKind::kBlock, format});
    cases.push_back({name + "Penalised",
                     {.top_k = 2, .repetition_penalty = 1.5},
                     RuleKind::kRejection,
                     format});
    cases.push_back({name + "PenalisedUncut",
                     {.temperature = 0.8,
                      .repetition_penalty = 1.3,
                      .presence_penalty = 0.4,
                      .frequency_penalty = 0.9,
                      .logit_bias = {{1, 0.5}, {4, -2.0}}},
                     RuleKind::kRejection,
                     format});
  }
  cases.push_back({"Coupled", {.temperature = 0.9}, RuleKind::kCoupled});
  cases.push_back({"CoupledTopK", {.top_k = 2}, RuleKind::kCoupled});
  cases.push_back(
      {"CoupledPenalised", {.frequency_penalty = 0.9}, RuleKind::kCoupled});
  return cases;
}

class AnsweredRowsTest : public ::testing::TestWithParam<VerifyCase> {};
INSTANTIATE_TEST_SUITE_P(All, AnsweredRowsTest,
                         ::testing::ValuesIn(VerifyCases()),
                         [](const auto& parameter) {
                           return parameter.param.name;
                         });

TEST_P(AnsweredRowsTest, AReplyIsThatOfWholeRows) {
  AnswerCounts counts;
  EXPECT_EQ(NumDifferent(GetParam(), Answers(counts)), 0);
  EXPECT_GT(counts.num_answered, 0);
  EXPECT_EQ(counts.num_undecided, 0);
}

// Tokens that a verifier draws by itself, whose penalties follow the text.
VerifyCall RunOf(const SamplingParams& sampling, uint64_t seed) {
  VerifyCall call = CallOf({.sampling = sampling}, seed);
  call.draft_tokens.clear();
  call.draft_rows.clear();
  call.max_more_tokens = 3;
  return call;
}
int NumDifferentRuns(const TableLm::Answer& answer) {
  int num_different = 0;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    const VerifyCall call = RunOf({.frequency_penalty = 1.5}, seed);
    const VerifyReply whole = ReplyOf(call, {}), reply = ReplyOf(call, answer);
    num_different +=
        AreEqual(whole, reply) && whole.more_tokens == reply.more_tokens ? 0
                                                                         : 1;
  }
  return num_different;
}

TEST(AnsweredRowsTest, ARunIsThatOfWholeRowsWhereAPenaltyFollowsIt) {
  AnswerCounts counts;
  EXPECT_EQ(NumDifferentRuns(Answers(counts)), 0);
  EXPECT_EQ(counts.num_answered, 4 * static_cast<int64_t>(kNumSeeds));
}

// All of a SPARSE reply's support is scored, and of a cut row it may not be
// told.
bool IsAskedForScores(const VerifyCase& c) {
  return c.format == ReplyFormat::kTokens || IsDrawn(c.sampling);
}

TEST_P(AnsweredRowsTest, LogProbabilitiesAreThoseOfWholeRows) {
  for (const int num_top : {0, 2, 20}) {
    for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
      AnswerCounts counts;
      VerifyCase c = GetParam();
      c.logprobs = {.num_top = num_top, .mode = mode};
      EXPECT_EQ(NumDifferent(c, Answers(counts)), 0) << num_top;
      EXPECT_EQ(counts.num_answered > 0, IsAskedForScores(c));
    }
  }
}

TEST(AnsweredRowsTest, WholeRowsAreNeverAskedAbout) {
  AnswerCounts counts;
  for (VerifyCase c : VerifyCases()) {
    c.logprobs = {.num_top = 2};
    if (IsAskedForScores(c)) c.format = ReplyFormat::kFull;
    ReplyOf(CallOf(c, 3), Answers(counts));
  }
  EXPECT_EQ(counts.num_answered + counts.num_undecided, 0);
}

// Mistakes in the questions (D1, D4), in what is decided by the answers (D2,
// D3), and in the answers.
TEST(AnsweredRowsMutantsTest, D1ACoinOfAnotherPositionIsCaught) {
  const ScopedMutant mutant(Mutant::kD1);
  AnswerCounts counts;
  for (const VerifyCase& c :
       {VerifyCase{.name = "plain"},
        VerifyCase{.name = "coupled", .rule = RuleKind::kCoupled}}) {
    EXPECT_GT(NumDifferent(c, Answers(counts)), 0) << c.name;
  }
}

TEST(AnsweredRowsMutantsTest, D2AnAnswerThatDoesNotDecideIsCaught) {
  const ScopedMutant mutant(Mutant::kD2);
  AnswerCounts counts;
  EXPECT_GT(
      AnsweredDifference(AnsweredConfig({.top_p = 0.9}, ReplyFormat::kTokens,
                                        Answers(counts, kFewTop)))
          .total_variation,
      1e-2);
}

TEST(AnsweredRowsMutantsTest, D3OthersThatWeighNothingAreCaught) {
  const ScopedMutant mutant(Mutant::kD3);
  AnswerCounts counts;
  EXPECT_GT(
      AnsweredDifference(AnsweredConfig({.top_p = 0.6}, ReplyFormat::kTokens,
                                        Answers(counts, kFewTop)))
          .total_variation,
      1e-2);
}

TEST(AnsweredRowsMutantsTest, D4DraftsThatPenaltiesDoNotSeeAreCaught) {
  const ScopedMutant mutant(Mutant::kD4);
  AnswerCounts counts;
  for (const ReplyFormat format :
       {ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    EXPECT_GT(
        NumDifferent({.sampling = {.frequency_penalty = 2}, .format = format},
                     Answers(counts)),
        0);
  }
}

TEST(AnsweredRowsMutantsTest, R2APenaltyThatForgetsTheRunIsCaught) {
  const ScopedMutant mutant(Mutant::kR2);
  AnswerCounts counts;
  EXPECT_GT(NumDifferentRuns(Answers(counts)), 0);
}

TEST(AnsweredRowsMutantsTest, TheSupportsOfOneToTheRightAreCaught) {
  const auto shifted = [](const RowQuestion& question,
                          absl::Span<const float> logits) {
    auto answer = AnswerOnHost(question, logits);
    auto& weights = std::get<DrawAnswer>(*answer).support_weights;
    if (!weights.empty()) {
      std::rotate(weights.begin(), weights.begin() + 1, weights.end());
    }
    return answer;
  };
  EXPECT_GT(NumDifferent({.format = ReplyFormat::kSparse}, shifted), 0);
  EXPECT_GT(NumDifferent({.format = ReplyFormat::kTokens}, shifted), 0);
}

TEST(AnsweredRowsMutantsTest, MovedTokensOneToTheRightAreCaught) {
  const auto shifted =
      [](const RowQuestion& question,
         absl::Span<const float> logits) -> std::optional<RowAnswer> {
    RowQuestion asked = question;
    auto& top = std::get<TopQuestion>(asked.what);
    const auto suffices = std::exchange(top.suffices, nullptr);
    auto answer = std::get<TopAnswer>(*AnswerOnHost(asked, logits));
    auto& moved = answer.token_logits;
    std::rotate(moved.begin(), moved.begin() + 1, moved.end());
    if (!suffices(answer)) return std::nullopt;
    return answer;
  };
  EXPECT_GT(
      AnsweredDifference(AnsweredConfig({.top_k = 3, .repetition_penalty = 1.7},
                                        ReplyFormat::kTokens, shifted))
          .total_variation,
      1e-2);
}

TEST(AnsweredRowsMutantsTest, TheScoresOfAnotherRowAreCaught) {
  std::optional<TopAnswer> last;
  const auto confused = [&](const RowQuestion& question,
                            absl::Span<const float> logits) {
    auto answer = AnswerOnHost(question, logits);
    auto& scored = std::get<DrawAnswer>(*answer).scored;
    if (scored->tokens.empty()) return answer;  // a row without a support
    if (last.has_value()) std::swap(scored, last);
    if (!last.has_value()) last = scored;
    return answer;
  };
  for (const auto mode : {LogprobsMode::kRaw, LogprobsMode::kProcessed}) {
    EXPECT_GT(
        NumDifferent({.logprobs = LogprobsOptions{.mode = mode}}, confused), 0);
  }
}

TEST(AnsweredRowsMutantsTest, TheNormaliserOfAnotherRowIsCaught) {
  double last_tail = 1;
  const auto confused = [&](const RowQuestion& question,
                            absl::Span<const float> logits) {
    auto answer = AnswerOnHost(question, logits);
    std::swap(std::get<DrawAnswer>(*answer).tail, last_tail);
    return answer;
  };
  EXPECT_GT(NumDifferent({.format = ReplyFormat::kSparse}, confused), 0);
  EXPECT_GT(NumDifferent({.format = ReplyFormat::kTokens}, confused), 0);
}

}  // namespace
}  // namespace outrider::testing::answered_rows
