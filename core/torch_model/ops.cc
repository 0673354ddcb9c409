// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/ops.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Indices on the host and as a tensor on `device`.
at::Tensor IndexTensor(absl::Span<const int32_t> indices, at::Device device) {
  at::Tensor host = at::empty({static_cast<int64_t>(indices.size())}, at::kInt);
  std::copy(indices.begin(), indices.end(), host.mutable_data_ptr<int32_t>());
  return host.to(device);
}

}  // namespace

at::ScalarType ActivationDtype(at::ScalarType weights, at::Device device) {
  return device.is_cpu() ? at::kFloat : weights;
}

at::Tensor Linear(const LinearWeights& weights, const at::Tensor& x) {
  return at::linear(x, weights.weight.to(x.scalar_type()), weights.bias);
}

at::Tensor Embed(const at::Tensor& table, absl::Span<const int32_t> indices) {
  return SelectRows(table, indices)
      .to(ActivationDtype(table.scalar_type(), table.device()));
}

at::Tensor SelectRows(const at::Tensor& x, absl::Span<const int32_t> indices) {
  return at::index_select(x, 0, IndexTensor(indices, x.device()));
}

at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                   double epsilon) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor mean_square = wide.square().mean(-1, /*keepdim=*/true);
  return (wide * (mean_square + epsilon).rsqrt() * weights.weight)
      .to(x.scalar_type());
}

at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                     double epsilon) {
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, weights.weight,
                        weights.bias, epsilon)
      .to(x.scalar_type());
}

at::Tensor Rotate(const at::Tensor& x, const at::Tensor& cosine,
                  const at::Tensor& sine) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor first = wide.narrow(-1, 0, half);
  const at::Tensor second = wide.narrow(-1, half, half);
  const at::Tensor c = cosine.unsqueeze(1);
  const at::Tensor s = sine.unsqueeze(1);
  return at::cat({first * c - second * s, second * c + first * s}, -1)
      .to(x.scalar_type());
}

at::Tensor SiluMul(const at::Tensor& gate_up) {
  const int64_t size = gate_up.size(-1) / 2;
  return at::silu(gate_up.narrow(-1, 0, size)) * gate_up.narrow(-1, size, size);
}

at::Tensor GeluTanh(const at::Tensor& x) { return at::gelu(x, "tanh"); }

void StoreRows(at::Tensor& cache, int first_row, const at::Tensor& rows) {
  cache.narrow(0, first_row, rows.size(0)).copy_(rows);
}

at::Tensor Attend(const AttentionInput& input) {
  const at::Tensor& q = input.queries;
  const int64_t num_rows = q.size(0);
  const int64_t num_heads = q.size(1);
  const int64_t head_dim = q.size(2);
  const int64_t num_kv_heads = input.keys.size(1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  at::Tensor out = at::empty({num_rows, num_heads * head_dim}, q.options());

  // [num_kv_heads, capacity, head_dim], converted once for all rows.
  const int64_t last = input.first_position + num_rows;
  const int64_t first =
      input.window > 0
          ? std::max<int64_t>(0, input.first_position + 1 - input.window)
          : 0;
  const auto head_major = [&](const at::Tensor& cache) {
    return cache.narrow(0, first, last - first)
        .to(q.scalar_type())
        .transpose(0, 1)
        .contiguous();
  };
  const at::Tensor keys = head_major(input.keys);
  const at::Tensor values = head_major(input.values);

  for (int64_t r = 0; r < num_rows; ++r) {
    const int64_t end = input.first_position + r + 1;
    const int64_t begin =
        input.window > 0 ? std::max<int64_t>(first, end - input.window) : first;
    const at::Tensor row =
        q[r].view({num_kv_heads, num_heads / num_kv_heads, head_dim});
    const at::Tensor k = keys.narrow(1, begin - first, end - begin);
    const at::Tensor v = values.narrow(1, begin - first, end - begin);
    const at::Tensor scores = at::bmm(row * scale, k.transpose(1, 2));
    const at::Tensor weights =
        at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
    out[r].copy_(at::bmm(weights, v).view({num_heads * head_dim}));
  }
  return out;
}

}  // namespace outrider
