// SPDX-License-Identifier: Apache-2.0
// Fifty held-out prompts through the three real processes, on the demo pair:
// greedy output equals plain decoding token for token, whatever K.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/model/solo_session.h"
#include "core/node/measure.h"
#include "core/sampling/process.h"
#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/read_stream.h"
#include "tests/support/demo_trio.h"
#include "tests/support/streams_at_once.h"

namespace outrider::testing::greedy_equals_plain {
namespace {

constexpr int kNumPrompts = 50;
constexpr int kNumTokens = 48;

// One prompt, what plain decoding makes of it, and how far the best logit was
// ahead of the second at each token.
struct Expected {
  TokenSeq prompt = {};
  TokenSeq tokens = {};
  std::vector<float> gaps = {};
};

std::vector<std::string> HeldOutPrompts() {
  std::ifstream file(SourcePath("models/prompts.jsonl"));
  std::vector<std::string> prompts;
  std::string line;
  while (prompts.size() < kNumPrompts && std::getline(file, line)) {
    prompts.push_back(nlohmann::json::parse(line)["prompt"]);
  }
  return prompts;
}

Expected DecodePlainly(SoloSession& session, TokenSeq prompt, int vocab_size) {
  Expected expected = {.prompt = prompt};
  TokenSeq input = std::move(prompt);
  int cached_length = 0;
  for (int i = 0; i < kNumTokens; ++i) {
    const auto rows = session.Extend(cached_length, input, 1);
    EXPECT_THAT(rows, IsOk());
    const ArgmaxAndGap best = FindArgmax(rows->Row(0).first(vocab_size));
    expected.tokens.push_back(best.argmax);
    expected.gaps.push_back(best.gap);
    cached_length += static_cast<int>(input.size());
    input = {best.argmax};
  }
  return expected;
}

// How a round drafts.
struct Setting {
  int k = 0;
  bool prompt_lookup = false;
};

// What the prompts of one setting came to.
struct Sums {
  int num_ties = 0;
  int num_drafted = 0;
  int num_accepted = 0;
};

client::GenerationRequest RequestFor(const TokenSeq& prompt,
                                     const Setting& setting) {
  client::GenerationRequest request;
  request.prompt = prompt;
  request.temperature = 0.0;
  request.max_tokens = kNumTokens;
  request.num_speculative_tokens = setting.k;
  request.prompt_lookup = setting.prompt_lookup;
  request.ignore_eos = true;
  return request;
}

// Reads one prompt's stream. The tokens must be those of plain decoding, or the
// first difference a tie that the kernels may break: `tie_gap` is four times
// the largest difference that the number of rows makes to a logit, 0 where it
// makes none.
void ExpectPlain(client::GenerationStream& stream, const Expected& expected,
                 const Setting& setting, double tie_gap, Sums& sums) {
  const ReadStream read = ReadToTheEnd(stream);
  const TokenSeq& tokens = read.tokens;
  EXPECT_EQ(read.num_draft_failures, 0);
  sums.num_drafted += read.num_drafted;
  sums.num_accepted += read.num_accepted;
  if (tokens == expected.tokens) return;
  ++sums.num_ties;
  EXPECT_EQ(tokens.size(), expected.tokens.size());
  const auto place =
      std::mismatch(tokens.begin(), tokens.end(), expected.tokens.begin())
          .first -
      tokens.begin();
  EXPECT_LE(expected.gaps[place], tie_gap)
      << "K = " << setting.k << (setting.prompt_lookup ? ", with lookup," : "")
      << " differs at token " << place << ", and it is no tie";
}

TEST(GreedyEqualsPlainTest, FiftyHeldOutPromptsThroughThreeProcesses) {
  const std::string target = SourcePath("models/demo-target");
  const auto tokenizer = LoadTokenizer(target);
  ASSERT_THAT(tokenizer, IsOk());
  const int vocab_size = (*tokenizer)->vocab_size();
  const auto for_measure = LoadTorchCausalLm({.model_directory = target});
  ASSERT_THAT(for_measure, IsOk());
  const auto measured =
      MeasureModel(**for_measure, {.vocab_size = vocab_size, .num_repeats = 1});
  ASSERT_THAT(measured, IsOk());
  const auto model = LoadTorchCausalLm({.model_directory = target});
  ASSERT_THAT(model, IsOk());
  auto session = SoloSession::Open(**model, (*model)->info().context_length);
  ASSERT_THAT(session, IsOk());
  const double tie_gap = 4 * measured->max_logit_difference;

  std::vector<Expected> all_expected;
  for (const std::string& prompt : HeldOutPrompts()) {
    all_expected.push_back(
        DecodePlainly(*session, (*tokenizer)->Encode(prompt), vocab_size));
  }
  ASSERT_EQ(all_expected.size(), static_cast<size_t>(kNumPrompts));

  DemoTrio trio;
  int num_ties = 0;
  int num_outputs = 0;
  for (const Setting& setting : {Setting{0}, Setting{1}, Setting{2}, Setting{4},
                                 Setting{8}, Setting{8, true}}) {
    Sums sums;
    std::vector<client::GenerationRequest> requests;
    for (const Expected& expected : all_expected) {
      requests.push_back(RequestFor(expected.prompt, setting));
    }
    GenerateInOrder(trio.client(), requests,
                    [&](size_t i, client::GenerationStream& stream) {
                      ++num_outputs;
                      ExpectPlain(stream, all_expected[i], setting, tie_gap,
                                  sums);
                    });
    num_ties += sums.num_ties;
    std::cout << "K = " << setting.k
              << (setting.prompt_lookup ? ", with lookup" : "") << ": "
              << sums.num_accepted << " of " << sums.num_drafted
              << " drafts accepted\n";
    if (setting.k == 0) {
      EXPECT_EQ(sums.num_drafted, 0);
    } else {
      // Far below what the pair does: plain decoding under another name would
      // have none.
      EXPECT_GT(sums.num_accepted, kNumPrompts * kNumTokens / 10);
      EXPECT_LT(sums.num_accepted, sums.num_drafted);
    }
  }
  RecordProperty("ties", num_ties);
  std::cout << "ties broken by the number of rows: " << num_ties << " of "
            << num_outputs << " outputs (logits move by up to "
            << measured->max_logit_difference << ")\n";

  trio.Stop();
}

}  // namespace
}  // namespace outrider::testing::greedy_equals_plain
