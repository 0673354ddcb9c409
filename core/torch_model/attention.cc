// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/attention.h"

#include <ATen/ATen.h>

namespace outrider {
namespace {

// Normalises and rotates heads as the family does.
// heads: [num_rows, num_heads, head_dim], not necessarily contiguous.
at::Tensor PlaceHeads(const ModelContext& model, const NormWeights& norm,
                      const RotaryAngles& angles, const at::Tensor& heads) {
  const ModelConfig& config = model.config;
  const Ops& ops = model.ops;
  const at::Tensor placed =
      config.has_qk_norm
          ? ops.RmsNorm(norm, heads.contiguous(), config.norm_epsilon)
          : heads;
  return config.positions == PositionKind::kRotary ? ops.Rotate(angles, placed)
                                                   : placed.contiguous();
}

}  // namespace

at::Tensor SelfAttention(const AttentionLayer& layer, const PassLayout& layout,
                         const at::Tensor& x) {
  const ModelConfig& config = layer.model.config;
  const Ops& ops = layer.model.ops;
  const AttentionWeights& weights = layer.weights;
  const int64_t num_rows = x.size(0);
  const int64_t q_size = config.query_size();
  const int64_t kv_size = config.kv_size();

  const at::Tensor qkv = ops.Linear(weights.qkv, x);
  const auto heads = [&](int64_t offset, int64_t num_heads) {
    return qkv.narrow(1, offset, num_heads * config.head_dim)
        .view({num_rows, num_heads, config.head_dim});
  };
  const at::Tensor queries =
      PlaceHeads(layer.model, weights.query_norm, layout.angles,
                 heads(0, config.num_heads));
  const at::Tensor keys =
      PlaceHeads(layer.model, weights.key_norm, layout.angles,
                 heads(q_size, config.num_kv_heads));
  const at::Tensor values = heads(q_size + kv_size, config.num_kv_heads);

  at::Tensor attended = at::empty({num_rows, q_size}, x.options());
  int64_t row = 0;
  for (const Segment& segment : layout.segments) {
    const int64_t n = segment.num_rows;
    at::Tensor& cached_keys = segment.cache->keys[layer.index];
    at::Tensor& cached_values = segment.cache->values[layer.index];
    cached_keys.narrow(0, segment.first_position, n)
        .copy_(keys.narrow(0, row, n));
    cached_values.narrow(0, segment.first_position, n)
        .copy_(values.narrow(0, row, n));
    attended.narrow(0, row, n).copy_(
        ops.Attend({.queries = queries.narrow(0, row, n),
                    .keys = cached_keys,
                    .values = cached_values,
                    .first_position = segment.first_position,
                    .window = config.sliding_windows[layer.index]}));
    row += n;
  }
  return ops.Linear(weights.output, attended);
}

}  // namespace outrider
