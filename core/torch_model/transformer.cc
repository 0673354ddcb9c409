// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/transformer.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/torch_model/norm.h"

namespace outrider {
namespace {

// The rows of a pass, session after session.
struct PassRows {
  std::vector<TokenId> tokens = {};
  std::vector<int> positions = {};
  std::vector<int> logit_rows = {};  // indices of the rows to answer
  PassLayout layout = {};
};

PassRows LineUp(absl::Span<const Continuation> batch) {
  PassRows rows;
  for (const Continuation& item : batch) {
    const int num_rows = static_cast<int>(item.tokens.size());
    const int first = item.cache->length;
    rows.layout.segments.push_back({item.cache, first, num_rows});
    for (int i = 0; i < num_rows; ++i) {
      if (i >= num_rows - item.num_logit_rows) {
        rows.logit_rows.push_back(static_cast<int>(rows.tokens.size()));
      }
      rows.tokens.push_back(item.tokens[i]);
      rows.positions.push_back(first + i);
    }
  }
  return rows;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, ModelWeights weights,
                         at::Device device)
    : config_(config),
      weights_(std::move(weights)),
      device_(device),
      frequencies_(config.positions == PositionKind::kRotary
                       ? RotaryFrequencies(config)
                       : std::vector<float>()) {}

at::Tensor Transformer::Forward(absl::Span<const Continuation> batch) const {
  PassRows rows = LineUp(batch);

  // [num_rows, hidden_size] from here to the head.
  at::Tensor x = Embed(weights_.token_embedding, rows.tokens);
  if (config_.positions == PositionKind::kLearned) {
    x = x + Embed(weights_.position_embedding, rows.positions);
  } else {
    rows.layout.angles = AnglesAt(frequencies_, rows.positions, device_);
  }

  for (int i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[i];
    x = x + SelfAttention({config_, layer.attention, i}, rows.layout,
                          Normalize(config_, layer.attention_norm, x));
    x = x + FeedForward(config_, layer.feed_forward,
                        Normalize(config_, layer.feed_forward_norm, x));
  }

  if (rows.logit_rows.empty()) return {};
  x = Normalize(config_, weights_.final_norm, SelectRows(x, rows.logit_rows));
  return Linear(weights_.head, x).to(at::kFloat).to(at::kCPU).contiguous();
}

}  // namespace outrider
