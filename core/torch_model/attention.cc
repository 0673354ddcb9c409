// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/attention.h"

#include <ATen/ATen.h>

namespace outrider {
namespace {

// Some of the heads that stand side by side in the rows of qkv.
struct HeadRange {
  int64_t first = 0;
  int64_t count = 0;
};

void NormalizeHeads(const ModelContext& model, const NormWeights& norm,
                    HeadRange range, at::Tensor& qkv) {
  const int64_t head_dim = model.config.head_dim;
  const at::Tensor heads =
      qkv.narrow(1, range.first * head_dim, range.count * head_dim)
          .view({qkv.size(0), range.count, head_dim});
  heads.copy_(
      model.ops.RmsNorm(norm, heads.contiguous(), model.config.norm_epsilon));
}

// Normalises and rotates queries and keys as the family does.
void PlaceHeads(const AttentionLayer& layer, const RotaryAngles& angles,
                at::Tensor& qkv) {
  const ModelConfig& config = layer.model.config;
  if (config.has_qk_norm) {
    NormalizeHeads(layer.model, layer.weights.query_norm,
                   {.first = 0, .count = config.num_heads}, qkv);
    NormalizeHeads(layer.model, layer.weights.key_norm,
                   {.first = config.num_heads, .count = config.num_kv_heads},
                   qkv);
  }
  if (config.positions == PositionKind::kRotary) {
    layer.model.ops.Rotate(angles, config.num_heads + config.num_kv_heads, qkv);
  }
}

}  // namespace

void AddSelfAttention(const AttentionLayer& layer, const PassLayout& layout,
                      const at::Tensor& input, at::Tensor& x) {
  const ModelConfig& config = layer.model.config;
  const Ops& ops = layer.model.ops;

  at::Tensor qkv = ops.Linear(layer.weights.qkv, input);
  PlaceHeads(layer, layout.angles, qkv);

  at::Tensor attended =
      at::empty({input.size(0), config.query_size()}, input.options());
  int row = 0;
  for (const Segment& segment : layout.segments) {
    const AttentionRows rows = {.qkv = qkv,
                                .first_row = row,
                                .num_rows = segment.num_rows,
                                .keys = segment.cache->keys[layer.index],
                                .values = segment.cache->values[layer.index],
                                .first_position = segment.first_position,
                                .window = config.sliding_windows[layer.index]};
    ops.StoreKv(rows);
    ops.Attend(rows, attended);
    row += segment.num_rows;
  }
  ops.AddLinear(layer.weights.output, attended, x);
}

}  // namespace outrider
