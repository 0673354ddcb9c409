// SPDX-License-Identifier: Apache-2.0
// The turns of a chat on the demo pair: with what earlier turns have cached
// they are the same, to the last bit of their log-probabilities.
#include <chrono>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/demo_trio.h"

namespace outrider::testing::prefix_cache {
namespace {

using client::GenerationRequest;

constexpr int kNumTop = 2;  // alternatives of each token

struct Turn {
  TokenSeq tokens = {};
  std::vector<double> logprobs = {};
  GenerationStart start = {};
  GenerationFinish finish = {};
};

class PrefixCacheGoldenTest : public ::testing::Test {
 protected:
  Turn Generate(GenerationRequest request, const std::string& salt) {
    request.cache_salt = salt;
    request.seed = 7;
    request.max_tokens = 40;
    request.ignore_eos = true;
    request.logprobs = kNumTop;
    Turn turn;
    const auto stream =
        trio_.client().Generate(std::move(request), std::chrono::seconds(60));
    while (true) {
      const auto update = stream->Next();
      EXPECT_THAT(update, IsOk());
      if (!update.ok() || !update->has_value()) return turn;
      for (const GeneratedToken& token : (*update)->tokens) {
        turn.tokens.push_back(token.id);
        turn.logprobs.push_back(token.logprob.value_or(1));
        for (const auto& top : token.top_logprobs) {
          turn.logprobs.push_back(top.logprob);
        }
      }
      if ((*update)->start) turn.start = *(*update)->start;
      if ((*update)->finish) turn.finish = *(*update)->finish;
    }
  }

  // Three turns of a chat, each with all that was said before, under a salt of
  // its own and beside it without one.
  void ExpectTheSameChat(const GenerationRequest& request,
                         const std::string& salt) {
    TokenSeq text(101);
    for (int i = 0; i < 101; ++i) text[i] = (i * 37 + 11) % 3000 + 20;
    for (int turn = 0; turn < 3; ++turn) {
      const int length = static_cast<int>(text.size());
      GenerationRequest turns_request = request;
      turns_request.prompt = text;
      const Turn alone = Generate(turns_request, "");
      const Turn shared = Generate(turns_request, salt);
      EXPECT_EQ(shared.tokens, alone.tokens);
      EXPECT_EQ(shared.logprobs, alone.logprobs);
      EXPECT_EQ(shared.finish.num_misses, 0);
      EXPECT_EQ(alone.start.num_cached_prompt_tokens, 0);
      // All but the end of the answer, of which drafts may lack, and what is
      // new.
      EXPECT_GE(shared.start.num_cached_prompt_tokens,
                turn == 0 ? 0 : length - 7 - 3 * 16);
      EXPECT_LT(shared.start.num_cached_prompt_tokens, turn == 0 ? 1 : length);
      text.insert(text.end(), shared.tokens.begin(), shared.tokens.end());
      for (int i = 0; i < 7; ++i) text.push_back(100 + i);
    }
  }

  // A text of which only some tokens were delivered goes on as it was, under
  // the salt that it began with, and under another.
  void ExpectTheSameResumed(GenerationRequest request,
                            const std::string& salt) {
    constexpr int kNumDelivered = 25;
    request.prompt = TokenSeq(101, 42);
    const Turn whole = Generate(request, salt);
    request.model = whole.start.model;
    const auto middle = whole.tokens.begin() + kNumDelivered;
    request.delivered = TokenSeq(whole.tokens.begin(), middle);
    for (const std::string& resumed_under : {salt, salt + " of another"}) {
      const Turn rest = Generate(request, resumed_under);
      EXPECT_EQ(rest.tokens, TokenSeq(middle, whole.tokens.end()));
      EXPECT_EQ(rest.logprobs,
                std::vector<double>(
                    whole.logprobs.begin() + kNumDelivered * (1 + kNumTop),
                    whole.logprobs.end()));
      EXPECT_EQ(rest.start.num_cached_prompt_tokens,
                resumed_under == salt ? 101 : 0);
    }
  }

  DemoTrio trio_;
};

TEST_F(PrefixCacheGoldenTest, AChatIsTheSameWithAndWithoutWhatWasCached) {
  ExpectTheSameChat({.temperature = 0, .num_speculative_tokens = 4}, "a");
  ExpectTheSameChat({.temperature = 0.8, .num_speculative_tokens = 0}, "b");
  ExpectTheSameChat({.temperature = 0.8,
                     .num_speculative_tokens = 4,
                     .acceptance_rule = RuleKind::kCoupled},
                    "c");
}

TEST_F(PrefixCacheGoldenTest, AResumedStreamIsTheSameFromWhatItsFirstHalfLeft) {
  ExpectTheSameResumed({.temperature = 0, .num_speculative_tokens = 4}, "d");
  ExpectTheSameResumed({.temperature = 0.8,
                        .num_speculative_tokens = 4,
                        .acceptance_rule = RuleKind::kCoupled},
                       "e");
}

}  // namespace
}  // namespace outrider::testing::prefix_cache
