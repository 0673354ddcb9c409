// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/torch_model/ops.h"

namespace outrider {
namespace {

// [num_rows, num_heads + 2 * num_kv_heads, head_dim]
at::Tensor HeadsOf(const AttentionRows& rows) {
  return rows.qkv.narrow(0, rows.first_row, rows.num_rows)
      .view({rows.num_rows, -1, rows.keys.size(2)});
}

class AtenOps final : public Ops {
 public:
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
  void StoreKv(const AttentionRows& rows) const override;
  void Attend(const AttentionRows& rows, at::Tensor& attended) const override;
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
  return at::index_select(rows, 0, host.to(rows.device()))
      .to(ActivationDtype(rows.scalar_type(), rows.device()));
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

void AtenOps::StoreKv(const AttentionRows& rows) const {
  const int64_t num_kv_heads = rows.keys.size(1);
  const at::Tensor heads = HeadsOf(rows);
  const int64_t num_heads = heads.size(1) - 2 * num_kv_heads;
  const auto store = [&](int64_t first_head, const at::Tensor& cache) {
    cache.narrow(0, rows.first_position, rows.num_rows)
        .copy_(heads.narrow(1, first_head, num_kv_heads));
  };
  store(num_heads, rows.keys);
  store(num_heads + num_kv_heads, rows.values);
}

void AtenOps::Attend(const AttentionRows& rows, at::Tensor& attended) const {
  const int64_t num_rows = rows.num_rows;
  const int64_t num_kv_heads = rows.keys.size(1);
  const at::Tensor heads = HeadsOf(rows);
  const int64_t num_heads = heads.size(1) - 2 * num_kv_heads;
  const int64_t head_dim = heads.size(2);
  const at::Tensor q = heads.narrow(1, 0, num_heads);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));

  // [num_kv_heads, number of keys, head_dim], converted once for all rows.
  const auto begin_of = [&rows](int64_t position) {
    return rows.window > 0 ? std::max<int64_t>(0, position + 1 - rows.window)
                           : int64_t{0};
  };
  const int64_t first = begin_of(rows.first_position);
  const int64_t last = rows.first_position + num_rows;
  const auto head_major = [&](const at::Tensor& cache) {
    return cache.narrow(0, first, last - first)
        .to(q.scalar_type())
        .transpose(0, 1)
        .contiguous();
  };
  const at::Tensor keys = head_major(rows.keys);
  const at::Tensor values = head_major(rows.values);

  // Row by row: with a mask over common keys a row would depend on those
  // behind it, through the order of sums.
  for (int64_t r = 0; r < num_rows; ++r) {
    const int64_t position = rows.first_position + r;
    const int64_t begin = begin_of(position);
    const at::Tensor row =
        q[r].view({num_kv_heads, num_heads / num_kv_heads, head_dim});
    const at::Tensor k = keys.narrow(1, begin - first, position + 1 - begin);
    const at::Tensor v = values.narrow(1, begin - first, position + 1 - begin);
    const at::Tensor scores = at::bmm(row * scale, k.transpose(1, 2));
    const at::Tensor weights =
        at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
    attended[rows.first_row + r].copy_(
        at::bmm(weights, v).view({num_heads * head_dim}));
  }
}

}  // namespace

std::unique_ptr<const Ops> MakeAtenOps() { return std::make_unique<AtenOps>(); }

}  // namespace outrider
