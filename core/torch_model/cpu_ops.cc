// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <cmath>

#include "core/base/check.h"
#include "core/kernels/activation.h"
#include "core/kernels/attention.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/linear.h"
#include "core/kernels/norm.h"
#include "core/kernels/rope.h"
#include "core/torch_model/ops.h"

namespace outrider {
namespace {

// Of a float32 or bfloat16 tensor.
kernels::ConstElements ElementsOf(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  if (tensor.scalar_type() == at::kFloat) return tensor.const_data_ptr<float>();
  OUTRIDER_CHECK(tensor.scalar_type() == at::kBFloat16);
  return static_cast<const kernels::BFloat16*>(tensor.const_data_ptr());
}

// Of contiguous activations.
const float* Floats(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  return tensor.const_data_ptr<float>();
}

int Size(const at::Tensor& tensor, int dimension) {
  return static_cast<int>(tensor.size(dimension));
}

class CpuOps final : public Ops {
 public:
  Matrix Prepare(Matrix matrix) const override;
  at::Tensor Linear(const LinearWeights& weights,
                    const at::Tensor& x) const override;
  at::Tensor Embed(const Matrix& table,
                   absl::Span<const int32_t> indices) const override;
  at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                     double epsilon) const override;
  at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                       double epsilon) const override;
  at::Tensor Rotate(const RotaryAngles& angles,
                    const at::Tensor& x) const override;
  at::Tensor SiluMul(const at::Tensor& gate_up) const override;
  at::Tensor GeluTanh(const at::Tensor& x) const override;
  at::Tensor Attend(const AttentionInput& input) const override;
};

Matrix CpuOps::Prepare(Matrix matrix) const {
  const at::Tensor& tensor = matrix.tensor;
  if (!tensor.defined()) return matrix;
  const std::vector<kernels::WeightRows> parts = {
      {.elements = ElementsOf(tensor), .num_rows = Size(tensor, 0)}};
  return {.packed = std::make_shared<const kernels::PackedWeight>(
              parts, Size(tensor, 1))};
}

at::Tensor CpuOps::Linear(const LinearWeights& weights,
                          const at::Tensor& x) const {
  const kernels::PackedWeight& packed = *weights.matrix.packed;
  OUTRIDER_CHECK(x.size(1) == packed.in()) << x.size(1);
  at::Tensor y = at::empty({x.size(0), packed.out()}, at::kFloat);
  kernels::Linear(
      {.x = Floats(x),
       .num_rows = Size(x, 0),
       .weight = &packed,
       .bias = weights.bias.defined() ? Floats(weights.bias) : nullptr,
       .y = y.mutable_data_ptr<float>()});
  return y;
}

at::Tensor CpuOps::Embed(const Matrix& table,
                         absl::Span<const int32_t> indices) const {
  const kernels::PackedWeight& packed = *table.packed;
  at::Tensor rows = at::empty(
      {static_cast<int64_t>(indices.size()), packed.in()}, at::kFloat);
  float* to = rows.mutable_data_ptr<float>();
  for (const int32_t index : indices) {
    packed.CopyRow(index, to);
    to += packed.in();
  }
  return rows;
}

at::Tensor CpuOps::RmsNorm(const NormWeights& weights, const at::Tensor& x,
                           double epsilon) const {
  at::Tensor y = at::empty(x.sizes(), at::kFloat);
  kernels::RmsNorm({.x = Floats(x),
                    .weight = Floats(weights.weight),
                    .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                    .size = Size(x, -1),
                    .epsilon = static_cast<float>(epsilon),
                    .y = y.mutable_data_ptr<float>()});
  return y;
}

at::Tensor CpuOps::LayerNorm(const NormWeights& weights, const at::Tensor& x,
                             double epsilon) const {
  at::Tensor y = at::empty(x.sizes(), at::kFloat);
  kernels::LayerNorm({.x = Floats(x),
                      .weight = Floats(weights.weight),
                      .bias = Floats(weights.bias),
                      .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                      .size = Size(x, -1),
                      .epsilon = static_cast<float>(epsilon),
                      .y = y.mutable_data_ptr<float>()});
  return y;
}

at::Tensor CpuOps::Rotate(const RotaryAngles& angles,
                          const at::Tensor& x) const {
  at::Tensor y = at::empty(x.sizes(), at::kFloat);
  y.copy_(x);
  // The angles are already those of these rows: row i takes entry i.
  kernels::ApplyRope({.x = y.mutable_data_ptr<float>(),
                      .row_stride = Size(x, 1) * Size(x, 2),
                      .num_rows = Size(x, 0),
                      .num_heads = Size(x, 1),
                      .head_dim = Size(x, 2),
                      .first_position = 0,
                      .cos = Floats(angles.cosine),
                      .sin = Floats(angles.sine)});
  return y;
}

at::Tensor CpuOps::SiluMul(const at::Tensor& gate_up) const {
  const int size = Size(gate_up, 1) / 2;
  at::Tensor y = at::empty({gate_up.size(0), size}, at::kFloat);
  kernels::SiluMul({.gate_up = Floats(gate_up),
                    .num_rows = Size(gate_up, 0),
                    .size = size,
                    .y = y.mutable_data_ptr<float>()});
  return y;
}

at::Tensor CpuOps::GeluTanh(const at::Tensor& x) const {
  at::Tensor y = x.clone();
  kernels::GeluNew(y.mutable_data_ptr<float>(), static_cast<size_t>(y.numel()));
  return y;
}

at::Tensor CpuOps::Attend(const AttentionInput& input) const {
  const at::Tensor& q = input.queries;
  const int num_heads = Size(q, 1);
  const int head_dim = Size(q, 2);
  at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, at::kFloat);
  kernels::Attention({.queries = Floats(q),
                      .query_stride = num_heads * head_dim,
                      .keys = ElementsOf(input.keys),
                      .values = ElementsOf(input.values),
                      .num_rows = Size(q, 0),
                      .first_position = input.first_position,
                      .num_heads = num_heads,
                      .num_kv_heads = Size(input.keys, 1),
                      .head_dim = head_dim,
                      .window = input.window,
                      .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                      .out = out.mutable_data_ptr<float>()});
  return out;
}

}  // namespace

std::unique_ptr<const Ops> MakeCpuOps() { return std::make_unique<CpuOps>(); }

}  // namespace outrider
