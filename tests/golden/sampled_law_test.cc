// SPDX-License-Identifier: Apache-2.0
// Sampled output through the three real processes, on the demo pair: the joint
// law of the first tokens is the target's in every reply format.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/sampling/process.h"
#include "core/testing/chi_square.h"
#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/demo_trio.h"

namespace outrider::testing {
namespace {

// Three tokens: the first is the prefill's, the others one round's.
constexpr int kLength = 3;
constexpr int kDraftLength = 2;
constexpr int kNumSamples = 1500;
constexpr SamplingParams kSampling = {.temperature = 1.3, .top_k = 3};
const std::string kPrompt = "def read(self, ";

using Law = std::map<TokenSeq, double>;

// The law of the next tokens, by the model itself, branch by branch.
class PlainLaw {
 public:
  PlainLaw(CausalLm& model, int vocab_size, const SamplingParams& sampling)
      : model_(model), vocab_size_(vocab_size), sampling_(sampling) {}

  Law Of(const TokenSeq& prompt) {
    Branch(prompt, {}, 1);
    return std::move(law_);
  }

 private:
  void Branch(const TokenSeq& prompt, const TokenSeq& text, double mass) {
    if (text.size() == kLength) {
      law_[text] = mass;
      return;
    }
    TokenSeq context = prompt;
    context.insert(context.end(), text.begin(), text.end());
    const auto rows = model_.Extend({{.session = session_,
                                      .keep_length = 0,
                                      .tokens = context,
                                      .num_rows = 1}})[0];
    ASSERT_THAT(rows, IsOk());
    const auto p = Process(rows->Row(0).first(vocab_size_), sampling_, {});
    ASSERT_THAT(p, IsOk());
    for (const TokenId token : p->support()) {
      TokenSeq longer = text;
      longer.push_back(token);
      Branch(prompt, longer, mass * (*p)(token));
    }
  }

  CausalLm& model_;
  const int vocab_size_;
  const SamplingParams sampling_;
  const SessionId session_ = SessionId::Random();
  Law law_;
};

struct Samples {
  std::map<TokenSeq, int64_t> counts = {};
  int num_drafted = 0;
  int num_accepted = 0;
};

// Seeds 1, 2, ...: the counts are the same in every run.
Samples Sample(client::GenerationClient& client, ReplyFormat format) {
  Samples samples;
  for (int seed = 1; seed <= kNumSamples; ++seed) {
    client::GenerationRequest request;
    request.prompt = kPrompt;
    request.temperature = kSampling.temperature;
    request.top_k = kSampling.top_k;
    request.seed = seed;
    request.max_tokens = kLength;
    request.num_speculative_tokens = kDraftLength;
    request.ignore_eos = true;
    request.reply_format = format;
    const auto stream = client.Generate(request, std::chrono::minutes(1));
    TokenSeq tokens;
    while (true) {
      const auto update = stream->Next();
      EXPECT_THAT(update, IsOk());
      if (!update.ok() || !update->has_value()) break;
      for (const auto& token : (*update)->tokens) tokens.push_back(token.id);
      if (const auto& round = (*update)->round) {
        samples.num_drafted += round->num_drafted;
        samples.num_accepted += round->num_accepted;
      }
      if ((*update)->finish) {
        EXPECT_EQ((*update)->finish->num_misses, 0);
        EXPECT_EQ((*update)->finish->num_draft_failures, 0);
      }
    }
    ++samples.counts[tokens];
  }
  return samples;
}

// Pearson's test at a false-alarm rate of 1e-9.
ChiSquare Compare(const std::map<TokenSeq, int64_t>& counts, const Law& law) {
  std::vector<int64_t> observed;
  std::vector<double> expected;
  for (const auto& [text, probability] : law) {
    const auto found = counts.find(text);
    observed.push_back(found == counts.end() ? 0 : found->second);
    expected.push_back(probability);
  }
  for (const auto& [text, count] : counts) {
    EXPECT_TRUE(law.contains(text)) << count << " samples are impossible";
  }
  return TestCounts(observed, expected);
}

TEST(SampledLawTest, IsTheTargetsInEveryReplyFormat) {
  const std::string target = SourcePath("models/demo-target");
  const auto tokenizer = LoadTokenizer(target);
  ASSERT_THAT(tokenizer, IsOk());
  const auto model = LoadTorchCausalLm({.model_directory = target});
  ASSERT_THAT(model, IsOk());
  const int vocab_size = (*tokenizer)->vocab_size();
  const TokenSeq prompt = (*tokenizer)->Encode(kPrompt);
  const Law law = PlainLaw(**model, vocab_size, kSampling).Of(prompt);
  const Law colder =
      PlainLaw(**model, vocab_size, {.temperature = 1.0, .top_k = 3})
          .Of(prompt);

  DemoTrio trio;
  std::map<TokenSeq, int64_t> first;
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    const Samples samples = Sample(trio.client(), format);
    const auto& counts = samples.counts;
    const ChiSquare result = Compare(counts, law);
    std::cout << "format " << static_cast<int>(format) << ": chi-square "
              << result.statistic << ", critical " << result.critical << "; "
              << samples.num_accepted << " of " << samples.num_drafted
              << " drafts accepted\n";
    // One draft a sample, some accepted and some replaced: without either the
    // law would be plain decoding's for nothing.
    EXPECT_EQ(samples.num_drafted, kNumSamples);
    EXPECT_GT(samples.num_accepted, kNumSamples / 5);
    EXPECT_LT(samples.num_accepted, kNumSamples);
    EXPECT_LT(result.statistic, result.critical);
    // More than the law: the same tokens for the same seeds.
    if (first.empty()) first = counts;
    EXPECT_EQ(counts, first);
    // Negative control: a target at another temperature must be told apart.
    EXPECT_GT(Compare(counts, colder).statistic, result.critical);
  }
  trio.Stop();
}

}  // namespace
}  // namespace outrider::testing
