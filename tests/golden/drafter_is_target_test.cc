// SPDX-License-Identifier: Apache-2.0
// The demo target as its own drafter, through the three real processes: where
// the draft's law is the target's, every draft is accepted.
#include <chrono>
#include <string>

#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/demo_trio.h"

namespace outrider::testing::drafter_is_target {
namespace {

constexpr int kNumTokens = 64;

struct Decoded {
  int num_tokens = 0;
  int num_drafted = 0;
  int num_accepted = 0;
};

Decoded Decode(client::GenerationClient& client,
               const client::GenerationRequest& request) {
  const auto stream = client.Generate(request, std::chrono::minutes(2));
  Decoded run;
  while (true) {
    const auto update = stream->Next();
    EXPECT_THAT(update, IsOk());
    if (!update.ok() || !update->has_value()) return run;
    run.num_tokens += static_cast<int>((*update)->tokens.size());
    if (const auto& round = (*update)->round) {
      run.num_drafted += round->num_drafted;
      run.num_accepted += round->num_accepted;
    }
    if ((*update)->finish) {
      EXPECT_EQ((*update)->finish->num_misses, 0);
      // A busy machine may make a draft late, and greedy ones are not awaited.
      if (request.temperature > 0) {
        EXPECT_EQ((*update)->finish->num_draft_failures, 0);
      }
    }
  }
}

// Whole rows travel as float64 weights, which nothing is rounded of. What is
// left is that the kernels may add up K + 1 rows in another order than one row:
// such a difference moves a probability by about 1e-6 of itself, and a fixed
// seed meets a coin in between practically never.
TEST(DrafterIsTargetTest, EveryDraftIsAcceptedForEveryKAndTemperature) {
  const std::string target = SourcePath("models/demo-target");
  const auto tokenizer = LoadTokenizer(target);
  ASSERT_THAT(tokenizer, IsOk());
  DemoTrio trio({.model = target, .dtype = "float32"});
  int num_drafted = 0;
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kTokens}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const int k : {1, 2, 4, 8}) {
        SCOPED_TRACE("format " + std::to_string(static_cast<int>(format)) +
                     ", T = " + std::to_string(temperature) +
                     ", K = " + std::to_string(k));
        client::GenerationRequest request;
        request.prompt = "def read(self, ";
        request.temperature = temperature;
        request.seed = 20261121;
        request.max_tokens = kNumTokens;
        request.num_speculative_tokens = k;
        request.ignore_eos = true;
        request.draft_options.support_size = (*tokenizer)->vocab_size();
        request.draft_options.support_mass = 1.0;
        request.reply_format = format;
        const Decoded run = Decode(trio.client(), request);
        EXPECT_EQ(run.num_tokens, kNumTokens);
        EXPECT_EQ(run.num_accepted, run.num_drafted);
        num_drafted += run.num_drafted;
        // All but one a round, from when the drafter has the prompt.
        EXPECT_LE(run.num_drafted,
                  (kNumTokens - 1) - (kNumTokens - 1 + k) / (k + 1));
      }
    }
  }
  // A drafter as slow as its verifier saves nothing, and is left alone now and
  // then: not every setting drafts much.
  EXPECT_GT(num_drafted, kNumTokens);
  trio.Stop();
}

// Negative control: the demo's own drafter is refused at times, by the same
// requests.
TEST(DrafterIsTargetTest, AnotherDrafterIsRefusedNowAndThen) {
  DemoTrio trio;
  client::GenerationRequest request;
  request.prompt = "def read(self, ";
  request.temperature = 1.0;
  request.seed = 20261121;
  request.max_tokens = kNumTokens;
  request.num_speculative_tokens = 4;
  request.ignore_eos = true;
  Decoded run = Decode(trio.client(), request);
  // Where others load the machine, the drafter is left alone for a while.
  for (int i = 0; i < 100 && run.num_accepted == 0; ++i) {
    run = Decode(trio.client(), request);
  }
  EXPECT_GT(run.num_accepted, 0);
  EXPECT_LT(run.num_accepted, run.num_drafted);
  trio.Stop();
}

}  // namespace
}  // namespace outrider::testing::drafter_is_target
