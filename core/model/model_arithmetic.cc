// SPDX-License-Identifier: Apache-2.0
#include "core/model/model_arithmetic.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace outrider {
namespace {

// Equal for equal numbers alone.
std::string Exactly(double value) { return absl::StrFormat("%.17g", value); }

std::string DescribePositions(const ModelConfig& config) {
  if (config.positions == PositionKind::kLearned) return "learned";
  const RopeScaling& scaling = config.rope_scaling;
  std::string rotary = absl::StrCat("rotary ", Exactly(config.rope_theta));
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      break;
    case RopeScaling::Kind::kLinear:
      absl::StrAppend(&rotary, " linear ", Exactly(scaling.factor));
      break;
    case RopeScaling::Kind::kLlama3:
      absl::StrAppend(&rotary, " llama3 ", Exactly(scaling.factor), " ",
                      Exactly(scaling.low_freq_factor), " ",
                      Exactly(scaling.high_freq_factor), " ",
                      Exactly(scaling.original_context_length));
      break;
    case RopeScaling::Kind::kYarn:
      absl::StrAppend(
          &rotary, " yarn ", Exactly(scaling.factor), " ",
          Exactly(scaling.original_context_length), " ",
          Exactly(scaling.beta_fast), " ", Exactly(scaling.beta_slow), " ",
          scaling.has_whole_bounds ? "whole " : "", Exactly(scaling.magnitude));
      break;
  }
  return rotary;
}

}  // namespace

std::string DescribeArithmetic(const ModelConfig& config) {
  return absl::StrCat(
      config.layout == ModelLayout::kGpt2 ? "gpt2" : "llama", ", norm ",
      config.norm == NormKind::kLayer ? "layer" : "rms", " ",
      Exactly(config.norm_epsilon), ", feed forward ",
      config.feed_forward == FeedForwardKind::kGelu ? "gelu" : "silu",
      ", heads ", config.num_heads, " of ", config.head_dim, ", ",
      config.num_kv_heads, " of keys, positions ", DescribePositions(config),
      ", windows ", absl::StrJoin(config.sliding_windows, " "));
}

}  // namespace outrider
