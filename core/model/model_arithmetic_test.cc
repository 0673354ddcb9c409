// SPDX-License-Identifier: Apache-2.0
#include "core/model/model_arithmetic.h"

#include <functional>

#include "gtest/gtest.h"

namespace outrider {
namespace {

ModelConfig LlamaConfig() {
  ModelConfig config = {.model_type = "llama"};
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.norm_epsilon = 1e-5;
  config.rope_theta = 10000;
  config.sliding_windows = {0, 16};
  return config;
}

using Change = std::function<void(ModelConfig&)>;

TEST(ModelArithmeticTest, IsAnotherWhereRowsAre) {
  const Change changes[] = {
      [](ModelConfig& c) { c.norm_epsilon = 1e-6; },
      [](ModelConfig& c) { c.rope_theta = 10001; },
      [](ModelConfig& c) { c.positions = PositionKind::kLearned; },
      [](ModelConfig& c) { c.sliding_windows[0] = 16; },
      [](ModelConfig& c) {
        c.sliding_windows = {0, 17};
      },
      [](ModelConfig& c) { c.num_kv_heads = 4; },
      [](ModelConfig& c) { c.num_heads = 2, c.head_dim = 16; },
      [](ModelConfig& c) { c.norm = NormKind::kLayer; },
      [](ModelConfig& c) { c.feed_forward = FeedForwardKind::kGelu; },
      [](ModelConfig& c) {
        c.rope_scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 2};
      },
      [](ModelConfig& c) {
        c.rope_scaling = {.kind = RopeScaling::Kind::kLlama3, .factor = 2};
      },
      [](ModelConfig& c) {
        c.rope_scaling = {.kind = RopeScaling::Kind::kLlama3,
                          .factor = 2,
                          .original_context_length = 64};
      },
      [](ModelConfig& c) {
        c.rope_scaling = {.kind = RopeScaling::Kind::kYarn,
                          .factor = 2,
                          .original_context_length = 64};
      },
      [](ModelConfig& c) {
        c.rope_scaling = {.kind = RopeScaling::Kind::kYarn,
                          .factor = 2,
                          .original_context_length = 64,
                          .magnitude = 1.1};
      },
  };
  const std::string before = DescribeArithmetic(LlamaConfig());
  std::string last = before;
  for (const Change& change : changes) {
    ModelConfig config = LlamaConfig();
    change(config);
    EXPECT_NE(DescribeArithmetic(config), before);
    EXPECT_NE(DescribeArithmetic(config), last);
    last = DescribeArithmetic(config);
  }
}

// Hashes of weights that somebody has noted down are of this very text.
TEST(ModelArithmeticTest, StaysWhatItIs) {
  EXPECT_EQ(DescribeArithmetic(LlamaConfig()),
            "llama, norm rms 1.0000000000000001e-05, feed forward silu, heads "
            "4 of 8, 2 of keys, positions rotary 10000, windows 0 16");
}

TEST(ModelArithmeticTest, IsTheSameWhereOnlyLimitsDiffer) {
  ModelConfig config = LlamaConfig();
  config.context_length = 4096;
  config.eos_ids = {7};
  config.model_type = "mistral";
  EXPECT_EQ(DescribeArithmetic(config), DescribeArithmetic(LlamaConfig()));
}

}  // namespace
}  // namespace outrider
