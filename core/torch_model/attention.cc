// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/attention.h"

#include <ATen/ATen.h>

namespace outrider {
namespace {

// Normalises queries and keys head by head, where the family does so.
// qkv: [num_rows, query_size + 2 * kv_size]
void NormalizeHeads(const AttentionLayer& layer, at::Tensor& qkv) {
  const ModelConfig& config = layer.model.config;
  if (!config.has_qk_norm) return;
  const auto normalize = [&](const NormWeights& weights, int64_t first_column,
                             int64_t num_heads) {
    at::Tensor heads = qkv.narrow(1, first_column, num_heads * config.head_dim)
                           .view({qkv.size(0), num_heads, config.head_dim});
    heads.copy_(layer.model.ops.RmsNorm(weights, heads.contiguous(),
                                        config.norm_epsilon));
  };
  normalize(layer.weights.query_norm, 0, config.num_heads);
  normalize(layer.weights.key_norm, config.query_size(), config.num_kv_heads);
}

}  // namespace

void AddSelfAttention(const AttentionLayer& layer, const PassLayout& layout,
                      const at::Tensor& x, at::Tensor& sum) {
  const ModelConfig& config = layer.model.config;
  const Ops& ops = layer.model.ops;

  at::Tensor qkv = ops.Linear(layer.weights.qkv, x);
  NormalizeHeads(layer, qkv);
  if (config.positions == PositionKind::kRotary) {
    ops.Rotate(layout.angles, config.num_heads + config.num_kv_heads, qkv);
  }

  at::Tensor attended =
      at::empty({x.size(0), config.query_size()}, x.options());
  const AttentionPass pass = {.qkv = qkv,
                              .segments = layout.segments,
                              .keys = layer.kv.keys,
                              .values = layer.kv.values,
                              .window = config.sliding_windows[layer.index]};
  ops.StoreKv(pass);
  ops.Attend(pass, attended);
  ops.AddLinear(layer.weights.output, attended, sum);
}

}  // namespace outrider
