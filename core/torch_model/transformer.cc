// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/transformer.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/model/rotary_frequencies.h"
#include "core/torch_model/norm.h"
#include "core/torch_model/rope.h"

namespace outrider {
namespace {

// The rows of a pass, session after session.
struct PassRows {
  std::vector<TokenId> tokens = {};
  std::vector<int> positions = {};
  std::vector<int64_t> logit_rows = {};  // indices of the rows to answer
  PassLayout layout = {};
};

PassRows LineUp(absl::Span<const Extension> batch) {
  PassRows rows;
  for (const Extension& extension : batch) {
    const int num_rows = static_cast<int>(extension.tokens.size());
    const int first = extension.cached_length;
    rows.layout.segments.push_back({.blocks = extension.blocks.data(),
                                    .first_position = first,
                                    .num_rows = num_rows});
    for (int i = 0; i < num_rows; ++i) {
      if (i >= num_rows - extension.num_rows) {
        rows.logit_rows.push_back(rows.tokens.size());
      }
      rows.tokens.push_back(extension.tokens[i]);
      rows.positions.push_back(first + i);
    }
  }
  return rows;
}

// [num_rows, size] -> [indices.size(), size]
at::Tensor SelectRows(const at::Tensor& x,
                      const std::vector<int64_t>& indices) {
  if (x.size(0) == static_cast<int64_t>(indices.size())) return x;
  return x.index_select(0, at::tensor(indices));
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, ModelWeights weights,
                         std::unique_ptr<const Ops> ops)
    : config_(config),
      weights_(std::move(weights)),
      ops_(std::move(ops)),
      frequencies_(config.positions == PositionKind::kRotary
                       ? RotaryFrequencies(config)
                       : std::vector<float>()) {}

at::Tensor Transformer::Forward(absl::Span<const Extension> batch,
                                const KvBlocks& kv) const {
  const ModelContext model = {config_, *ops_};
  PassRows rows = LineUp(batch);

  // [num_rows, hidden_size] from here to the head: the residual stream, to
  // which every block adds.
  at::Tensor x = ops_->Embed(weights_.token_embedding, rows.tokens);
  if (config_.positions == PositionKind::kLearned) {
    x = x + ops_->Embed(weights_.position_embedding, rows.positions);
  } else {
    rows.layout.angles =
        AnglesAt(frequencies_, rows.positions,
                 static_cast<float>(config_.rope_scaling.magnitude));
  }

  for (int i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[i];
    AddSelfAttention({model, layer.attention, kv.layer(i), i}, rows.layout,
                     Normalize(model, layer.attention_norm, x), x);
    AddFeedForward(model, layer.feed_forward,
                   Normalize(model, layer.feed_forward_norm, x), x);
  }

  if (rows.logit_rows.empty()) return {};
  x = Normalize(model, weights_.final_norm, SelectRows(x, rows.logit_rows));
  return ops_->Linear(weights_.head, x);
}

}  // namespace outrider
