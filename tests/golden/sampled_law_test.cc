// SPDX-License-Identifier: Apache-2.0
// Sampled output through the three real processes, on the demo pair: the joint
// law of the first tokens is the target's, for each rule and reply format.
// Pearson's test with fixed seeds, whose false-alarm rate for random ones is
// 1e-9 each; a lossy run of the same processes must fail it.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/model/solo_session.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/process.h"
#include "core/testing/chi_square.h"
#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/read_stream.h"
#include "tests/support/demo_trio.h"
#include "tests/support/streams_at_once.h"

namespace outrider::testing::sampled_law {
namespace {

// The first token is the prefill's; the others are a round of two drafts, or
// that and another one.
constexpr int kLength = 4;
constexpr int kDraftLength = 2;
constexpr int kNumSamples = 1000;
constexpr int kNumAtOnce = 200;  // of each look at the drafts
// Of so many, the same seeds must give the very same texts as another format.
constexpr int kNumRepeated = 500;
constexpr SamplingParams kSampling = {.temperature = 1.3, .top_k = 3};
const std::string kPrompt = "def read(self, ";

using Law = std::map<TokenSeq, double>;

// The model itself, without any of the services.
class PlainDecoder {
 public:
  PlainDecoder(std::unique_ptr<CausalLm> model, TokenSeq prompt, int vocab_size)
      : model_(std::move(model)),
        session_(SoloSession::Open(*model_, model_->info().context_length)),
        prompt_(std::move(prompt)),
        vocab_size_(vocab_size) {}

  // The law of the next tokens, branch by branch.
  Law LawOf(const SamplingParams& sampling) {
    Law law;
    Branch(sampling, {}, 1, law);
    return law;
  }
  // What the coupled rule draws with this seed.
  TokenSeq Draw(uint64_t seed, bool is_bfloat16) {
    Coins coins(seed);
    TokenSeq text;
    while (text.size() < kLength) {
      text.push_back(DrawCoupled(Row(text, kSampling, is_bfloat16),
                                 prompt_.size() + text.size(), coins));
    }
    return text;
  }

 private:
  // Each is computed once: the texts that can be drawn share few beginnings.
  const std::vector<float>& LogitsAfter(const TokenSeq& text) {
    std::vector<float>& logits = logits_[text];
    if (!logits.empty()) return logits;
    TokenSeq context = prompt_;
    context.insert(context.end(), text.begin(), text.end());
    EXPECT_THAT(session_, IsOk());
    const auto rows = session_->Extend(0, context, 1);
    EXPECT_THAT(rows, IsOk());
    const auto row = rows->Row(0).first(vocab_size_);
    logits.assign(row.begin(), row.end());
    return logits;
  }
  Distribution Row(const TokenSeq& text, const SamplingParams& sampling,
                   bool is_bfloat16) {
    std::vector<float> logits = LogitsAfter(text);
    if (is_bfloat16) {
      for (float& logit : logits) logit = ToFloat(ToBFloat16(logit));
    }
    auto p = Process(logits, sampling, {});
    EXPECT_THAT(p, IsOk());
    return *std::move(p);
  }
  void Branch(const SamplingParams& sampling, const TokenSeq& text, double mass,
              Law& law) {
    if (text.size() == kLength) {
      law[text] = mass;
      return;
    }
    const Distribution p = Row(text, sampling, /*is_bfloat16=*/false);
    for (const TokenId token : p.support()) {
      TokenSeq longer = text;
      longer.push_back(token);
      Branch(sampling, longer, mass * p(token), law);
    }
  }

  const std::unique_ptr<CausalLm> model_;
  absl::StatusOr<SoloSession> session_;  // of model_
  const TokenSeq prompt_;
  const int vocab_size_;
  std::map<TokenSeq, std::vector<float>> logits_;  // by text
};

struct Setting {
  std::string name;
  RuleKind rule;
  ReplyFormat format;
  double lossy_lenience = 1;
  double temperature = kSampling.temperature;
};

struct Samples {
  std::vector<TokenSeq> texts = {};  // by seed
  int num_drafted = 0;
  int num_accepted = 0;
};

client::GenerationRequest RequestFor(const Setting& setting, int seed) {
  client::GenerationRequest request;
  request.prompt = kPrompt;
  request.temperature = setting.temperature;
  request.top_k = kSampling.top_k;
  request.seed = seed;
  request.max_tokens = kLength;
  request.num_speculative_tokens = kDraftLength;
  request.ignore_eos = true;
  request.acceptance_rule = setting.rule;
  request.reply_format = setting.format;
  if (setting.lossy_lenience < 1) {
    request.lossy_lenience = setting.lossy_lenience;
  }
  return request;
}

void AddSample(client::GenerationStream& stream, bool may_be_late,
               Samples& samples) {
  ReadStream read = ReadToTheEnd(stream);
  // A slow machine may be late with drafts: where the law does not depend on
  // which arrive, those are done without.
  if (!may_be_late) {
    EXPECT_EQ(read.num_draft_failures, 0);
  }
  samples.num_drafted += read.num_drafted;
  samples.num_accepted += read.num_accepted;
  samples.texts.push_back(std::move(read.tokens));
}

// Seeds 1, 2, ..., or the next ones after those of `samples`.
void AddSamples(client::GenerationClient& client, const Setting& setting,
                int num_more, Samples& samples) {
  std::vector<client::GenerationRequest> requests;
  for (int i = 1; i <= num_more; ++i) {
    const int seed = static_cast<int>(samples.texts.size()) + i;
    requests.push_back(RequestFor(setting, seed));
  }
  const bool may_be_late =
      setting.temperature == 0 || setting.rule == RuleKind::kCoupled;
  GenerateInOrder(client, requests,
                  [&](size_t, client::GenerationStream& stream) {
                    AddSample(stream, may_be_late, samples);
                  });
}

bool AllArePossible(const std::vector<TokenSeq>& texts, const Law& law) {
  return std::all_of(texts.begin(), texts.end(), [&law](const TokenSeq& text) {
    return law.contains(text);
  });
}

ChiSquare Compare(const std::vector<TokenSeq>& texts, const Law& law) {
  std::map<TokenSeq, int64_t> counts;
  for (const TokenSeq& text : texts) ++counts[text];
  std::vector<int64_t> observed;
  std::vector<double> expected;
  for (const auto& [text, probability] : law) {
    const auto found = counts.find(text);
    observed.push_back(found == counts.end() ? 0 : found->second);
    expected.push_back(probability);
  }
  return TestCounts(observed, expected);
}

class SampledLawTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string target = SourcePath("models/demo-target");
    const auto tokenizer = LoadTokenizer(target);
    ASSERT_THAT(tokenizer, IsOk());
    auto model = LoadTorchCausalLm({.model_directory = target});
    ASSERT_THAT(model, IsOk());
    plain_ = std::make_unique<PlainDecoder>(*std::move(model),
                                            (*tokenizer)->Encode(kPrompt),
                                            (*tokenizer)->vocab_size());
    law_ = plain_->LawOf(kSampling);
    colder_law_ =
        plain_->LawOf({.temperature = 0.85, .top_k = kSampling.top_k});
    greedy_law_ = plain_->LawOf({.temperature = 0});
  }

  // Sees `num_at_once` texts at a time: at least `num_texts`, and as many
  // drafts as `num_drafts`. Where others load the machine in the first rounds,
  // drafts cost more than they save, and the drafter is left alone: a new
  // coordinator does not know that. Whether there are more texts depends on
  // past ones alone, so the law stays what it is.
  Samples SampleWithDrafts(const Setting& setting, int num_texts,
                           int num_drafts, int num_at_once) {
    Samples samples;
    int num_left_alone = 0;
    while (static_cast<int>(samples.texts.size()) < num_texts ||
           (samples.num_drafted < num_drafts && num_left_alone < 20)) {
      const int num_drafted = samples.num_drafted;
      AddSamples(trio_->client(), setting, num_at_once, samples);
      if (samples.num_drafted - num_drafted < num_at_once) {
        ++num_left_alone;
        trio_->Stop();
        trio_.emplace();
      }
    }
    return samples;
  }
  // A law's worth of texts and of drafts.
  Samples SampleLaw(const Setting& setting) {
    return SampleWithDrafts(setting, kNumSamples, kNumSamples, kNumAtOnce);
  }

  // The texts, which have passed the test.
  std::vector<TokenSeq> ExpectLaw(const Setting& setting, const Law& law) {
    const Samples samples = SampleLaw(setting);
    const ChiSquare result = Compare(samples.texts, law);
    std::cout << setting.name << ": chi-square " << result.statistic
              << ", critical " << result.critical << "; "
              << samples.num_accepted << " of " << samples.num_drafted
              << " drafts accepted\n";
    EXPECT_LT(result.statistic, result.critical);
    EXPECT_TRUE(AllArePossible(samples.texts, law));
    // A draft a sample and more, some accepted and some replaced: without
    // either the law would be plain decoding's for nothing.
    EXPECT_GE(samples.num_drafted, kNumSamples);
    EXPECT_GT(samples.num_accepted, samples.num_drafted / 5);
    EXPECT_LT(samples.num_accepted, samples.num_drafted);
    // Negative control: a target at another temperature must be told apart.
    EXPECT_GT(Compare(samples.texts, colder_law_).statistic, result.critical);
    return samples.texts;
  }

  std::optional<DemoTrio> trio_{std::in_place};
  std::unique_ptr<PlainDecoder> plain_;
  Law law_;
  Law colder_law_;
  Law greedy_law_;
};

// Which rounds draft depends on past times, so under rejection and block a seed
// gives the law, not a text: each reply format is tested as a law of its own.
TEST_F(SampledLawTest, IsTheTargetsForEachRuleAndReplyFormat) {
  ExpectLaw({"rejection, SPARSE", RuleKind::kRejection, ReplyFormat::kSparse},
            law_);
  ExpectLaw({"block, TOKENS", RuleKind::kBlock, ReplyFormat::kTokens}, law_);
  std::vector<TokenSeq> texts = ExpectLaw(
      {"coupled, FULL", RuleKind::kCoupled, ReplyFormat::kFull}, law_);
  texts.resize(kNumRepeated);
  // More than the law: the same tokens for the same seeds.
  Samples repeated;
  AddSamples(trio_->client(),
             {"coupled, TOKENS", RuleKind::kCoupled, ReplyFormat::kTokens},
             kNumRepeated, repeated);
  EXPECT_EQ(repeated.texts, texts);
  trio_->Stop();
}

// Token for token the draws from rounded logits, which now and then are others
// than those from whole ones.
TEST_F(SampledLawTest, RowsInBFloat16AreThoseOfRoundedLogits) {
  const Samples samples =
      SampleWithDrafts({"coupled, FULL_BFLOAT16", RuleKind::kCoupled,
                        ReplyFormat::kFullBFloat16},
                       kNumRepeated, kNumRepeated, kNumRepeated);
  int num_changed = 0;
  for (size_t i = 0; i < samples.texts.size(); ++i) {
    EXPECT_EQ(samples.texts[i], plain_->Draw(i + 1, /*is_bfloat16=*/true));
    num_changed += samples.texts[i] != plain_->Draw(i + 1, false) ? 1 : 0;
  }
  std::cout << num_changed << " texts changed by rounding\n";
  EXPECT_GT(num_changed, 0);
  EXPECT_GT(samples.num_accepted, 0);
  trio_->Stop();
}

TEST_F(SampledLawTest, IsOneTextUnderTheGreedyRule) {
  for (const ReplyFormat format :
       {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
    constexpr int kNumTexts = 20;
    const Samples samples = SampleWithDrafts(
        {"greedy", RuleKind::kRejection, format, /*lossy_lenience=*/1,
         /*temperature=*/0},
        kNumTexts, kNumTexts, kNumTexts);
    EXPECT_TRUE(AllArePossible(samples.texts, greedy_law_));
    EXPECT_GT(samples.num_accepted, 0);
  }
  trio_->Stop();
}

// Drafts that are accepted too often, through the same three processes.
TEST_F(SampledLawTest, ALossyRunFailsTheTest) {
  const Samples samples =
      SampleLaw({"lossy", RuleKind::kRejection, ReplyFormat::kSparse,
                 /*lossy_lenience=*/0.3});
  const ChiSquare result = Compare(samples.texts, law_);
  std::cout << "lossy: chi-square " << result.statistic << ", critical "
            << result.critical << "\n";
  EXPECT_GT(result.statistic, result.critical);
  trio_->Stop();
}

}  // namespace
}  // namespace outrider::testing::sampled_law
