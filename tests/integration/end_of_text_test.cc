// SPDX-License-Identifier: Apache-2.0
// Where a generation ends, over real gRPC: stop strings and end-of-sequence
// tokens, for every K, and resumed at every place.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::IsEmpty;

constexpr int kNumTokens = 40;
const TokenSeq kPrompt = {5, 6, 7};

std::string TokenizerDirectory(const std::string& kind) {
  return std::string(std::getenv("OUTRIDER_SOURCE_DIR")) +
         "/tests/golden/testdata/tokenizer/" + kind;
}

std::unique_ptr<Tokenizer> Load(const std::string& kind) {
  auto tokenizer = LoadTokenizer(TokenizerDirectory(kind));
  EXPECT_THAT(tokenizer, IsOk());
  return *std::move(tokenizer);
}

// A cluster that speaks a tokenizer; models as in hash_model.h.
InProcessCluster::Options TextCluster(const std::string& kind, int vocab_size) {
  InProcessCluster::Options options = SmallCluster();
  options.tokenizer_directory = TokenizerDirectory(kind);
  options.target.vocab_size = vocab_size;
  options.target.table = [vocab_size](absl::Span<const TokenId> context) {
    return HashTarget(context, vocab_size);
  };
  options.draft.vocab_size = vocab_size;
  options.draft.table = [vocab_size](absl::Span<const TokenId> context) {
    return HashDraft(context, vocab_size);
  };
  return options;
}

std::string StreamedText(const Result& result) {
  std::string text;
  for (const auto& token : result.scored) text += token.text;
  return text;
}

std::string FullText(const Result& result) {
  return StreamedText(result) + result.finish->trailing_text;
}

// Resumes `whole`, which `request` gave, after each of its tokens: what was
// delivered and what comes must be the same tokens, text and reason.
void ExpectTheSameResumedAnywhere(InProcessCluster& cluster,
                                  client::GenerationRequest request,
                                  const Result& whole) {
  request.seed = whole.start->seed;
  request.model = whole.start->model;
  for (size_t m = 1; m <= whole.tokens.size(); ++m) {
    SCOPED_TRACE("after " + std::to_string(m) + " tokens");
    request.delivered = {whole.tokens.begin(), whole.tokens.begin() + m};
    const Result rest = Generate(cluster, request);
    ASSERT_THAT(rest.status, IsOk());
    EXPECT_EQ(rest.tokens,
              TokenSeq(whole.tokens.begin() + m, whole.tokens.end()));
    std::string text;
    for (size_t i = 0; i < m; ++i) text += whole.scored[i].text;
    EXPECT_EQ(text + FullText(rest), FullText(whole));
    EXPECT_EQ(rest.finish->reason, whole.finish->reason);
    // The last message stands after the last token, whatever a round had more.
    EXPECT_EQ(rest.last_index, static_cast<int>(whole.tokens.size()));
  }
}

// Byte-level, so that random tokens are full of broken characters.
class EndOfTextTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = Load("llama3");
  const int vocab_size_ = tokenizer_->vocab_size();
  const TokenSeq plain_ = PlainGreedy(kPrompt, kNumTokens, vocab_size_);
  const std::string text_ = tokenizer_->Decode(plain_);
};

// Stretches of the text, from whole characters.
std::vector<std::string> StretchesOf(const std::string& text) {
  const auto is_inside = [&text](size_t i) {
    return i < text.size() && (text[i] & 0xC0) == 0x80;
  };
  std::vector<std::string> stretches;
  for (size_t begin = 0; begin < text.size(); begin += 3) {
    while (is_inside(begin)) ++begin;
    size_t end = std::min(begin + 4, text.size());
    while (is_inside(end)) ++end;
    if (begin < end) stretches.push_back(text.substr(begin, end - begin));
  }
  return stretches;
}

TEST_F(EndOfTextTest, AStopStringCutsTheSameTextAtTheSameTokenForEveryK) {
  InProcessCluster::Options options = TextCluster("llama3", vocab_size_);
  // A draft that is always right, so that stops fall inside accepted blocks.
  options.draft.table = options.target.table;
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  int num_inside_blocks = 0;
  for (const std::string& stop : StretchesOf(text_)) {
    SCOPED_TRACE("stop " + stop);
    TokenSeq at_k0;
    for (const int k : {0, 4}) {
      client::GenerationRequest request = Greedy(kPrompt, kNumTokens, k);
      request.stop_strings = {"not in the text", stop};
      const Result result = Generate(cluster, request);
      ASSERT_THAT(result.status, IsOk());
      EXPECT_EQ(result.finish->reason, FinishReason::kStop);
      EXPECT_EQ(FullText(result), text_.substr(0, text_.find(stop)));
      EXPECT_THAT(result.finish->trailing_text, IsEmpty());
      if (k == 0) at_k0 = result.tokens;
      EXPECT_EQ(result.tokens, at_k0);
      const auto num_from_drafts = std::count_if(
          result.scored.begin(), result.scored.end(), [](const auto& token) {
            return token.origin == TokenOrigin::kDraft;
          });
      num_inside_blocks += num_from_drafts < result.num_accepted;
    }
    // No token too many: the last one completes the stop.
    const auto decoder = tokenizer_->NewDecoder(kPrompt);
    std::string certain;
    for (const TokenId token : at_k0) {
      EXPECT_EQ(certain.find(stop), std::string::npos);
      certain += decoder->Append(token);
    }
  }
  EXPECT_GT(num_inside_blocks, 5);
}

TEST_F(EndOfTextTest, AStoppedTextIsTheSameResumedAtEveryPlaceAndPastTheStop) {
  InProcessCluster cluster(TextCluster("llama3", vocab_size_));
  ASSERT_TRUE(cluster.WaitUntilReady());
  const std::vector<std::string> stops = StretchesOf(text_);
  for (const int k : {0, 4}) {
    client::GenerationRequest request = Greedy(kPrompt, kNumTokens, k);
    request.stop_strings = {stops[stops.size() / 3]};
    const Result whole = Generate(cluster, request);
    ASSERT_THAT(whole.status, IsOk());
    ASSERT_EQ(whole.finish->reason, FinishReason::kStop);
    ASSERT_GT(whole.tokens.size(), 5u);
    ExpectTheSameResumedAnywhere(cluster, request, whole);
  }
}

// In this vocabulary it would have a text of its own, as a special one has not.
TEST_F(EndOfTextTest, AnEndTokenEndsTheTextBeforeItForEveryKAndIsItsLastToken) {
  for (const bool is_draft_right : {false, true}) {
    for (const int place : {0, 1, 7, 13, 20}) {
      SCOPED_TRACE(place);
      const TokenId eos = plain_[place];
      InProcessCluster::Options options = TextCluster("llama3", vocab_size_);
      if (is_draft_right) options.draft.table = options.target.table;
      options.target.eos_ids = {eos};
      InProcessCluster cluster(options);
      ASSERT_TRUE(cluster.WaitUntilReady());
      const auto end = std::find(plain_.begin(), plain_.end(), eos) + 1;
      const TokenSeq expected(plain_.begin(), end);
      for (const int k : {0, 4}) {
        client::GenerationRequest request = Greedy(kPrompt, kNumTokens, k);
        const Result result = Generate(cluster, request);
        ASSERT_THAT(result.status, IsOk());
        EXPECT_EQ(result.tokens, expected);
        EXPECT_THAT(result.scored.back().text, IsEmpty());
        EXPECT_EQ(FullText(result),
                  tokenizer_->Decode(TokenSeq(plain_.begin(), end - 1)));
        EXPECT_EQ(result.finish->reason, FinishReason::kEos);
        ExpectTheSameResumedAnywhere(cluster, request, result);
        request.ignore_eos = true;
        const Result on = Generate(cluster, request);
        EXPECT_EQ(on.tokens, plain_);
        EXPECT_EQ(FullText(on), text_);
        EXPECT_EQ(on.finish->reason, FinishReason::kLength);
      }
    }
  }
}

// It may stand in place of an end token.
TEST_F(EndOfTextTest, AStopTokenEndsTheTextBeforeItForEveryKAndIsItsLastToken) {
  for (const bool is_draft_right : {false, true}) {
    InProcessCluster::Options options = TextCluster("llama3", vocab_size_);
    if (is_draft_right) options.draft.table = options.target.table;
    InProcessCluster cluster(options);
    ASSERT_TRUE(cluster.WaitUntilReady());
    int num_inside_blocks = 0;
    for (const int place : {0, 1, 7, 13, 20}) {
      SCOPED_TRACE(place);
      const TokenId stop = plain_[place];
      const auto at = std::find(plain_.begin(), plain_.end(), stop);
      for (const int k : {0, 4}) {
        client::GenerationRequest request = Greedy(kPrompt, kNumTokens, k);
        request.stop_token_ids = {vocab_size_ - 1, stop};
        request.ignore_eos = true;
        const Result result = Generate(cluster, request);
        ASSERT_THAT(result.status, IsOk());
        EXPECT_EQ(result.tokens, TokenSeq(plain_.begin(), at + 1));
        EXPECT_THAT(result.scored.back().text, IsEmpty());
        EXPECT_EQ(FullText(result),
                  tokenizer_->Decode(TokenSeq(plain_.begin(), at)));
        EXPECT_EQ(result.finish->reason, FinishReason::kStop);
        ExpectTheSameResumedAnywhere(cluster, request, result);
        const auto num_from_drafts = std::count_if(
            result.scored.begin(), result.scored.end(), [](const auto& token) {
              return token.origin == TokenOrigin::kDraft;
            });
        num_inside_blocks += num_from_drafts < result.num_accepted;
      }
    }
    EXPECT_TRUE(!is_draft_right || num_inside_blocks > 0);
  }
}

TEST_F(EndOfTextTest, TheBeginningOfAStopIsHeldBackAndTrailsWhereTheTextEnds) {
  InProcessCluster cluster(TextCluster("llama3", vocab_size_));
  ASSERT_TRUE(cluster.WaitUntilReady());
  const std::string end = text_.substr(text_.size() - 1);
  ASSERT_LT(end[0] & 0xFF, 0x80) << "choose another prompt";
  for (const int k : {0, 4}) {
    client::GenerationRequest request = Greedy(kPrompt, kNumTokens, k);
    request.stop_strings = {end + "\x01not in the text"};
    const Result result = Generate(cluster, request);
    ASSERT_THAT(result.status, IsOk());
    EXPECT_EQ(result.finish->reason, FinishReason::kLength);
    EXPECT_EQ(result.finish->trailing_text, end);
    EXPECT_EQ(FullText(result), text_);
    ExpectTheSameResumedAnywhere(cluster, request, result);
  }
}

// Says `script` after a prompt of this length, and then its last token for
// ever.
TableLm::Table Script(TokenSeq script, size_t prompt_length, int vocab_size) {
  return [script = std::move(script), prompt_length,
          vocab_size](absl::Span<const TokenId> context) {
    const size_t place =
        std::min(context.size() - prompt_length, script.size() - 1);
    std::vector<float> logits(vocab_size, 0.0f);
    logits[script[place]] = 30;
    return logits;
  };
}

// One of SentencePiece's tokenizers, whose words begin with a blank, and whose
// line feed is a byte token.
class EndOfPiecesTest : public ::testing::Test {
 protected:
  static constexpr TokenId kBos = 1;
  static constexpr TokenId kEos = 2;
  static constexpr TokenId kLineFeed = 3 + '\n';

  InProcessCluster::Options Saying(const TokenSeq& script,
                                   const TokenSeq& prompt) const {
    const int vocab_size = tokenizer_->vocab_size();
    InProcessCluster::Options options = TextCluster("llama2", vocab_size);
    options.target.table = Script(script, prompt.size(), vocab_size);
    options.draft.table = options.target.table;
    options.target.eos_ids = {kEos};
    return options;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = Load("llama2");
  const TokenId the_ = tokenizer_->Encode("the").back();
  const TokenId a_ = tokenizer_->Encode("a").back();
};

TEST_F(EndOfPiecesTest, AStopOfAByteTokenEndsTheTextAtIt) {
  InProcessCluster cluster(Saying({the_, kLineFeed, kEos}, kPrompt));
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (const int k : {0, 4}) {
    // The end token ends it, or the budget.
    for (const int num_tokens : {10, 2}) {
      client::GenerationRequest request = Greedy(kPrompt, num_tokens, k);
      const Result free = Generate(cluster, request);
      ASSERT_THAT(free.status, IsOk());
      EXPECT_EQ(free.finish->reason,
                num_tokens == 2 ? FinishReason::kLength : FinishReason::kEos);
      EXPECT_EQ(StreamedText(free), " the\n");
      EXPECT_THAT(free.finish->trailing_text, IsEmpty());
      request.stop_strings = {"\n"};
      const Result stopped = Generate(cluster, request);
      ASSERT_THAT(stopped.status, IsOk());
      EXPECT_EQ(stopped.finish->reason, FinishReason::kStop);
      EXPECT_EQ(FullText(stopped), " the");
      EXPECT_EQ(stopped.tokens, (TokenSeq{the_, kLineFeed}));
      ExpectTheSameResumedAnywhere(cluster, request, stopped);
    }
  }
}

// It is so in vLLM, whose decoder has seen the prompt's tokens.
TEST_F(EndOfPiecesTest, TheFirstWordKeepsItsBlankUnlessTheTextBeginsWithIt) {
  const std::pair<TokenSeq, std::string> told[] = {
      {{kBos, the_, a_}, " the a"},
      {{kBos, the_, a_, kEos}, " the a"},
      // None of these has a text.
      {{kBos}, "the a"},
      {{kBos, kEos, kBos}, "the a"},
  };
  for (const auto& [prompt, text] : told) {
    SCOPED_TRACE(prompt.size());
    InProcessCluster cluster(Saying({the_, a_, kEos}, prompt));
    ASSERT_TRUE(cluster.WaitUntilReady());
    for (const int k : {0, 4}) {
      const client::GenerationRequest request = Greedy(prompt, 10, k);
      const Result result = Generate(cluster, request);
      ASSERT_THAT(result.status, IsOk());
      EXPECT_EQ(result.tokens, (TokenSeq{the_, a_, kEos}));
      EXPECT_EQ(FullText(result), text);
      ExpectTheSameResumedAnywhere(cluster, request, result);
    }
  }
}

}  // namespace
}  // namespace outrider::testing
