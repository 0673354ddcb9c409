// SPDX-License-Identifier: Apache-2.0
// A drafter's model that goes on by itself, with tokens that it draws: whatever
// these are, drafts are those that the host draws row by row, and the law over
// production code is the target's. Built with OUTRIDER_MUTANTS. The kernels'
// own arithmetic is device_draws_test.cc's matter.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/testing/answer_on_host.h"
#include "core/testing/draw_on_host.h"
#include "gtest/gtest.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/scoped_mutant.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

constexpr int kWords = 5;

std::optional<RowAnswer> Answer(const RowQuestion& question,
                                absl::Span<const float> logits) {
  return AnswerOnHost(question, logits);
}

// What a device draws: by the drafter's own rule.
TokenId RightGuess(const RowQuestion& question, const TopAnswer& answer,
                   int num_drawn) {
  NextDraw next = *std::get<TopQuestion>(question.what).next;
  next.position += static_cast<uint64_t>(num_drawn);
  return *DrawOnHost(answer, question.temperature, next);
}

// The right guess, but for every `wrong`-th; 0: always. There is none after
// what is too unlikely, as on a device.
TableLm::Guess Guesses(int wrong) {
  return [wrong, num_guesses = 0, probability = 1.0](
             const RowQuestion& question, const TopAnswer& answer,
             int num_drawn) mutable -> std::optional<TokenId> {
    const NextDraw& next = *std::get<TopQuestion>(question.what).next;
    if (num_drawn == 0) probability = next.probability;
    if (next.min_probability > 0) probability *= answer.top_probability;
    if (probability < next.min_probability) return std::nullopt;
    const TokenId right = RightGuess(question, answer, num_drawn);
    const bool is_wrong = wrong > 0 && ++num_guesses % wrong == 0;
    return is_wrong ? (right + 1) % kWords : right;
  };
}

// Every token of the text matters.
std::vector<float> LogitsAfter(absl::Span<const TokenId> text) {
  uint32_t hash = 1;
  for (const TokenId token : text) hash = (hash + token + 1) * 2654435761u;
  std::vector<float> logits;
  for (int word = 0; word < kWords; ++word) {
    logits.push_back(static_cast<float>((hash >> (5 * word)) % 16) / 8);
  }
  return logits;
}

struct DrawCase {
  std::string name = {};
  SamplingParams sampling = {};
  DraftOptions options = {.support_size = 3};
  RuleKind rule = RuleKind::kRejection;
};
void PrintTo(const DrawCase& c, std::ostream* os) { *os << c.name; }

// What came of some rounds of a session, each of which keeps some drafts; they
// end where the cache is not what the text says.
struct Drafts {
  std::vector<Draft> drafts = {};
  std::vector<TokenSeq> cached = {};
  int num_passes = 0;
};

constexpr int kNumRounds = 8;

Drafts RunRounds(const DrawCase& c, TableLm::Guess guess,
                 TableLm::Answer answer = Answer) {
  const auto node = MakeDraftNode({.table = LogitsAfter,
                                   .vocab_size = kWords,
                                   .answer = std::move(answer),
                                   .guess = std::move(guess)});
  TokenSeq text(14, 1);
  DraftCall call = {.header = {.session = {.bytes = {1}}},
                    .max_draft_tokens = 5,
                    .options = c.options,
                    .sampling = c.sampling,
                    .seed = 7};
  call.rule = c.rule;
  call.header.delta.append_tokens = text;
  Drafts all;
  for (int round = 0; round < kNumRounds; ++round) {
    call.header.step = static_cast<uint64_t>(round);
    const auto reply = node->Run(call, ContentDigest(call));
    if (!reply.ok() || !std::holds_alternative<Draft>(reply->outcome)) break;
    all.drafts.push_back(std::get<Draft>(reply->outcome));
    all.cached.push_back(node->Cached(call.header.session));
    // So many stand, and another token comes.
    const TokenSeq& drafted = all.drafts.back().tokens;
    const size_t num_kept = std::min<size_t>(round % 6, drafted.size());
    text.insert(text.end(), drafted.begin(), drafted.begin() + num_kept);
    const int num_cached = std::min(static_cast<int>(text.size()),
                                    static_cast<int>(all.cached.back().size()));
    text.push_back(round % kWords);
    TokenLog log(call.header.session);
    log.Append(text);
    call.header.incarnation = reply->header.incarnation;
    call.header.prefix_hash = log.PrefixHash(num_cached);
    call.header.delta = {
        .keep_length = num_cached,
        .append_tokens = {text.begin() + num_cached, text.end()}};
  }
  all.num_passes = node->table().num_passes();
  return all;
}

// Whether they are the same, caches included.
bool AreSame(const Drafts& a, const Drafts& b) {
  const auto are_same = [](const Draft& one, const Draft& other) {
    if (one.tokens != other.tokens) return false;
    for (size_t i = 0; i < one.tokens.size(); ++i) {
      const Distribution& q = one.distributions[i];
      if (q.support() != other.distributions[i].support() ||
          q.weights() != other.distributions[i].weights()) {
        return false;
      }
    }
    return true;
  };
  return a.cached == b.cached &&
         std::equal(a.drafts.begin(), a.drafts.end(), b.drafts.begin(),
                    b.drafts.end(), are_same);
}

std::vector<DrawCase> DrawCases() {
  return {
      {.name = "TopK", .sampling = {.temperature = 0.8, .top_k = 3}},
      {.name = "Greedy", .sampling = {.temperature = 0}},
      {.name = "TopP",
       .sampling = {.top_p = 0.8},
       .options = {.support_size = 2, .support_mass = 0.9}},
      {.name = "MinP",
       .sampling = {.temperature = 1.2, .min_p = 0.2},
       .options = {.support_size = kWords, .round_weights = false}},
      {.name = "Mass", .options = {.support_size = 4, .support_mass = 0.8}},
      {.name = "Coupled", .sampling = {.top_k = 4}, .rule = RuleKind::kCoupled},
      {.name = "EndsEarly",
       .sampling = {.temperature = 0.8, .top_k = 3},
       .options = {.support_size = 3, .min_draft_probability = 0.12}},
  };
}

class DrawnTokensTest : public ::testing::TestWithParam<DrawCase> {};
INSTANTIATE_TEST_SUITE_P(Laws, DrawnTokensTest,
                         ::testing::ValuesIn(DrawCases()),
                         [](const auto& law) { return law.param.name; });

TEST_P(DrawnTokensTest, DraftsAreTheHostsWhateverTheModelGoesOnWith) {
  const Drafts right = RunRounds(GetParam(), {});
  ASSERT_EQ(right.drafts.size(), static_cast<size_t>(kNumRounds));
  const Drafts guessed = RunRounds(GetParam(), Guesses(0));
  EXPECT_TRUE(AreSame(guessed, right));
  EXPECT_EQ(guessed.num_passes, kNumRounds);
  for (const int wrong : {1, 2, 3, 7}) {
    const Drafts some = RunRounds(GetParam(), Guesses(wrong));
    EXPECT_TRUE(AreSame(some, right)) << "every " << wrong << "th is wrong";
    EXPECT_GT(some.num_passes, kNumRounds);
  }
}

TEST_P(DrawnTokensTest, AModelMayStopAnywhere) {
  for (const int most : {1, 2, 4}) {
    const auto stops = [most, guess = Guesses(0)](const RowQuestion& question,
                                                  const TopAnswer& answer,
                                                  int num_drawn) {
      const auto token = guess(question, answer, num_drawn);
      return num_drawn < most ? token : std::nullopt;
    };
    const Drafts some = RunRounds(GetParam(), stops);
    EXPECT_TRUE(AreSame(some, RunRounds(GetParam(), {}))) << most;
  }
}

// What a model draws would move the logits of the row after it.
TEST(PenalisedDraftsTest, AreThoseOfWholeRowsAndAnsweredRowByRow) {
  for (const SamplingParams& sampling :
       {SamplingParams{.repetition_penalty = 1.5},
        SamplingParams{.temperature = 0, .frequency_penalty = 0.6},
        SamplingParams{.top_p = 0.9, .logit_bias = {{2, 1.0}, {4, -1.0}}}}) {
    const DrawCase c = {
        .sampling = sampling,
        .options = {.support_size = 3, .min_draft_probability = 0.01}};
    int num_answered = 0;
    const Drafts answered =
        RunRounds(c, Guesses(0), [&](const RowQuestion& question, auto logits) {
          auto answer = AnswerOnHost(question, logits);
          num_answered += answer.has_value() ? 1 : 0;
          return answer;
        });
    EXPECT_TRUE(AreSame(answered, RunRounds(c, {}, /*answer=*/{})));
    EXPECT_EQ(num_answered, answered.num_passes);
  }
}

class DrawnTokensMutantsTest : public DrawnTokensTest {
 protected:
  bool IsCaught(Mutant mutant, int wrong) {
    const ScopedMutant scoped(mutant);
    const Drafts drafts = RunRounds(GetParam(), Guesses(wrong));
    return !AreSame(drafts, right_);
  }

  const Drafts right_ = RunRounds(GetParam(), {});
};
INSTANTIATE_TEST_SUITE_P(Laws, DrawnTokensMutantsTest,
                         ::testing::ValuesIn(DrawCases()),
                         [](const auto& law) { return law.param.name; });

TEST_P(DrawnTokensMutantsTest, G1AWrongGuessThatStandsIsCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kG1, 2));
}
TEST_P(DrawnTokensMutantsTest, G2ATextThatIsCutOneTooLongIsCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kG2, 2));
}
TEST_P(DrawnTokensMutantsTest, G3TheRowOfAnotherStepIsCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kG3, 0));
}

bool IsOneOf(absl::Span<const TokenId> ids, TokenId token) {
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

TEST(DrawnTokensLawTest, TheLawIsTheTargetsWhateverTheModelGoesOnWith) {
  const std::vector<std::pair<std::string, TableLm::Guess>> guesses = {
      {"the likeliest",
       [](const RowQuestion&, const TopAnswer& answer, int) {
         size_t best = 0;
         for (size_t i = 1; i < answer.ids.size(); ++i) {
           if (answer.logits[i] > answer.logits[best]) best = i;
         }
         return std::optional(answer.ids[best]);
       }},
      {"the first", [](const RowQuestion&, const TopAnswer& answer,
                       int) { return std::optional(answer.ids[0]); }},
      {"one that cannot be", [](const RowQuestion&, const TopAnswer&,
                                int) { return std::optional<TokenId>(3); }},
  };
  for (const auto& [name, guess] : guesses) {
    SCOPED_TRACE(name);
    // These guesses do not end where a draft does that ends early.
    for (const auto& [support_size, min_probability, length] :
         {std::tuple(2, 0.0, 4), std::tuple(4, 0.0, 4),
          std::tuple(2, 0.4, 6)}) {
      int64_t num_guesses = 0, num_likely = 0;
      const auto counted = [&, &guess = guess](const RowQuestion& question,
                                               const TopAnswer& answer,
                                               int num_drawn) {
        const auto token = guess(question, answer, num_drawn);
        ++num_guesses;
        num_likely += IsOneOf(answer.ids, *token) ? 1 : 0;
        return token;
      };
      LawCoverage().Expect(
          {.config = {.drafting = {.support_size = support_size,
                                   .min_draft_probability = min_probability},
                      .draft_lengths = {2, 1},
                      .draft_answer = Answer,
                      .draft_guess = counted},
           .length = length});
      // The model went on, and as every draw of the host's is enumerated, some
      // of what it went on with stood and some did not.
      EXPECT_GT(num_guesses, 100);
      EXPECT_GT(num_likely, 50);
    }
  }
}

}  // namespace
}  // namespace outrider::testing
