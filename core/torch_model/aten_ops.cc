// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/torch_model/ops.h"

namespace outrider {
namespace {

// [rows, num_heads + 2 * num_kv_heads, head_dim]
at::Tensor HeadsOf(const AttentionPass& pass) {
  return pass.qkv.view({pass.qkv.size(0), -1, pass.keys.size(3)});
}

// The place of each row of a pass among all positions of all blocks.
at::Tensor PlacesOf(const AttentionPass& pass) {
  std::vector<int64_t> places;
  for (const kernels::KvSegment& segment : pass.segments) {
    for (int i = 0; i < segment.num_rows; ++i) {
      const int position = segment.first_position + i;
      const int64_t block = segment.blocks[position / kKvBlockLength];
      places.push_back(block * kKvBlockLength + position % kKvBlockLength);
    }
  }
  return at::tensor(places);
}

// Positions [begin, end) of a session, gathered from its blocks:
// [num_kv_heads, end - begin, head_dim].
at::Tensor Gather(const at::Tensor& blocks, const kernels::KvSegment& segment,
                  int begin, int end) {
  std::vector<int64_t> ids;
  for (int i = begin / kKvBlockLength; i < NumKvBlocks(end); ++i) {
    ids.push_back(segment.blocks[i]);
  }
  return blocks.index_select(0, at::tensor(ids))
      .flatten(0, 1)
      .narrow(0, begin % kKvBlockLength, end - begin)
      .transpose(0, 1)
      .contiguous();
}

class AtenOps final : public Ops {
 public:
  std::string numerics() const override { return "aten"; }
  Matrix Prepare(Matrix matrix) const override { return matrix; }
  at::Tensor Linear(const LinearWeights& weights,
                    const at::Tensor& x) const override;
  void AddLinear(const LinearWeights& weights, const at::Tensor& x,
                 at::Tensor& sum) const override;
  at::Tensor Embed(const Matrix& table,
                   absl::Span<const int32_t> indices) const override;
  at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                     double epsilon) const override;
  at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                       double epsilon) const override;
  void Rotate(const RotaryAngles& angles, int num_heads,
              at::Tensor& x) const override;
  at::Tensor SiluMul(const at::Tensor& gate_up) const override;
  at::Tensor GeluTanh(const at::Tensor& x) const override;
  void StoreKv(const AttentionPass& pass) const override;
  void Attend(const AttentionPass& pass, at::Tensor& attended) const override;
};

at::Tensor AtenOps::Linear(const LinearWeights& weights,
                           const at::Tensor& x) const {
  return at::linear(x, weights.matrix.tensor.to(x.scalar_type()), weights.bias);
}

void AtenOps::AddLinear(const LinearWeights& weights, const at::Tensor& x,
                        at::Tensor& sum) const {
  sum.add_(Linear(weights, x));
}

at::Tensor AtenOps::Embed(const Matrix& table,
                          absl::Span<const int32_t> indices) const {
  const at::Tensor& rows = table.tensor;
  at::Tensor host = at::empty({static_cast<int64_t>(indices.size())}, at::kInt);
  std::copy(indices.begin(), indices.end(), host.mutable_data_ptr<int32_t>());
  return at::index_select(rows, 0, host).to(at::kFloat);
}

at::Tensor AtenOps::RmsNorm(const NormWeights& weights, const at::Tensor& x,
                            double epsilon) const {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor mean_square = wide.square().mean(-1, /*keepdim=*/true);
  return (wide * (mean_square + epsilon).rsqrt() * weights.weight)
      .to(x.scalar_type());
}

at::Tensor AtenOps::LayerNorm(const NormWeights& weights, const at::Tensor& x,
                              double epsilon) const {
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, weights.weight,
                        weights.bias, epsilon)
      .to(x.scalar_type());
}

void AtenOps::Rotate(const RotaryAngles& angles, int num_heads,
                     at::Tensor& x) const {
  const int64_t half = angles.cosine.size(1);
  at::Tensor heads = x.narrow(1, 0, num_heads * 2 * half)
                         .view({x.size(0), num_heads, 2 * half});
  const at::Tensor wide = heads.to(at::kFloat);
  const at::Tensor first = wide.narrow(-1, 0, half);
  const at::Tensor second = wide.narrow(-1, half, half);
  const at::Tensor c = angles.cosine.unsqueeze(1);
  const at::Tensor s = angles.sine.unsqueeze(1);
  heads.copy_(at::cat({first * c - second * s, second * c + first * s}, -1));
}

at::Tensor AtenOps::SiluMul(const at::Tensor& gate_up) const {
  const int64_t size = gate_up.size(-1) / 2;
  return at::silu(gate_up.narrow(-1, 0, size)) * gate_up.narrow(-1, size, size);
}

at::Tensor AtenOps::GeluTanh(const at::Tensor& x) const {
  return at::gelu(x, "tanh");
}

void AtenOps::StoreKv(const AttentionPass& pass) const {
  const int64_t num_kv_heads = pass.keys.size(2);
  const at::Tensor heads = HeadsOf(pass);
  const int64_t num_heads = heads.size(1) - 2 * num_kv_heads;
  const at::Tensor places = PlacesOf(pass);
  const auto store = [&](int64_t first_head, const at::Tensor& blocks) {
    blocks.flatten(0, 1).index_copy_(
        0, places,
        heads.narrow(1, first_head, num_kv_heads).to(blocks.scalar_type()));
  };
  store(num_heads, pass.keys);
  store(num_heads + num_kv_heads, pass.values);
}

void AtenOps::Attend(const AttentionPass& pass, at::Tensor& attended) const {
  const int64_t num_kv_heads = pass.keys.size(2);
  const at::Tensor heads = HeadsOf(pass);
  const int64_t num_heads = heads.size(1) - 2 * num_kv_heads;
  const int64_t head_dim = heads.size(2);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  const auto begin_of = [&pass](int position) {
    return pass.window > 0 ? std::max(0, position + 1 - pass.window) : 0;
  };

  int64_t row = 0;
  for (const kernels::KvSegment& segment : pass.segments) {
    // Gathered and converted once for all rows.
    const int first = begin_of(segment.first_position);
    const int last = segment.first_position + segment.num_rows;
    const at::Tensor keys =
        Gather(pass.keys, segment, first, last).to(heads.scalar_type());
    const at::Tensor values =
        Gather(pass.values, segment, first, last).to(heads.scalar_type());
    // Row by row: with a mask over common keys a row would depend on those
    // after it, through the order of sums.
    for (int i = 0; i < segment.num_rows; ++i, ++row) {
      const int position = segment.first_position + i;
      const int begin = begin_of(position);
      const at::Tensor q =
          heads[row]
              .narrow(0, 0, num_heads)
              .reshape({num_kv_heads, num_heads / num_kv_heads, head_dim});
      const at::Tensor k = keys.narrow(1, begin - first, position + 1 - begin);
      const at::Tensor v =
          values.narrow(1, begin - first, position + 1 - begin);
      const at::Tensor scores = at::bmm(q * scale, k.transpose(1, 2));
      const at::Tensor weights =
          at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
      attended[row].copy_(at::bmm(weights, v).view({num_heads * head_dim}));
    }
  }
}

}  // namespace

std::unique_ptr<const Ops> MakeAtenOps() { return std::make_unique<AtenOps>(); }

}  // namespace outrider
