// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

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

// Where the row of a cache at `position` begins.
kernels::Elements PlaceIn(const at::Tensor& cache, int position) {
  OUTRIDER_CHECK(cache.is_contiguous());
  const int64_t offset = cache.size(1) * cache.size(2) * position;
  if (cache.scalar_type() == at::kFloat) {
    return cache.mutable_data_ptr<float>() + offset;
  }
  OUTRIDER_CHECK(cache.scalar_type() == at::kBFloat16);
  return static_cast<kernels::BFloat16*>(cache.mutable_data_ptr()) + offset;
}

// Of contiguous activations.
const float* Floats(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  return tensor.const_data_ptr<float>();
}
float* MutableFloats(at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  return tensor.mutable_data_ptr<float>();
}

// Uninitialised activations, without the way through torch's dispatcher.
at::Tensor Empty(at::IntArrayRef sizes) {
  return at::detail::empty_cpu(sizes, at::kFloat);
}

int Size(const at::Tensor& tensor, int dimension) {
  return static_cast<int>(tensor.size(dimension));
}

// The queries of the first row; its keys and values follow.
const float* FirstRow(const AttentionRows& rows) {
  return Floats(rows.qkv) + rows.qkv.size(1) * rows.first_row;
}

class CpuOps final : public Ops {
 public:
  Matrix Prepare(Matrix matrix) const override;
  at::Tensor Linear(const LinearWeights& weights,
                    const at::Tensor& x) const override;
  void AddLinear(const LinearWeights& weights, const at::Tensor& x,
                 at::Tensor& y) const override;
  at::Tensor Embed(const Matrix& table,
                   absl::Span<const int32_t> indices) const override;
  at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                     double epsilon) const override;
  at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                       double epsilon) const override;
  void Rotate(const RotaryAngles& angles, int num_heads,
              at::Tensor& x) const override;
  at::Tensor SiluMul(const at::Tensor& gate_up) const override;
  void GeluTanh(at::Tensor& x) const override;
  void StoreKv(const AttentionRows& rows) const override;
  void Attend(const AttentionRows& rows, at::Tensor& attended) const override;
};

Matrix CpuOps::Prepare(Matrix matrix) const {
  const at::Tensor& tensor = matrix.tensor;
  if (!tensor.defined()) return matrix;
  const std::vector<kernels::WeightRows> parts = {
      {.elements = ElementsOf(tensor), .num_rows = Size(tensor, 0)}};
  return {.packed = std::make_shared<const kernels::PackedWeight>(
              parts, Size(tensor, 1))};
}

void RunLinear(const LinearWeights& weights, const at::Tensor& x,
               kernels::Output output, at::Tensor& y) {
  const kernels::PackedWeight& packed = *weights.matrix.packed;
  OUTRIDER_CHECK(x.size(1) == packed.in() && y.size(1) == packed.out())
      << x.size(1) << " to " << y.size(1);
  kernels::Linear(
      {.x = Floats(x),
       .num_rows = Size(x, 0),
       .weight = &packed,
       .bias = weights.bias.defined() ? Floats(weights.bias) : nullptr,
       .y = MutableFloats(y),
       .output = output});
}

at::Tensor CpuOps::Linear(const LinearWeights& weights,
                          const at::Tensor& x) const {
  at::Tensor y = Empty({x.size(0), weights.matrix.packed->out()});
  RunLinear(weights, x, kernels::Output::kReplace, y);
  return y;
}

void CpuOps::AddLinear(const LinearWeights& weights, const at::Tensor& x,
                       at::Tensor& y) const {
  RunLinear(weights, x, kernels::Output::kAdd, y);
}

at::Tensor CpuOps::Embed(const Matrix& table,
                         absl::Span<const int32_t> indices) const {
  const kernels::PackedWeight& packed = *table.packed;
  at::Tensor rows = Empty({static_cast<int64_t>(indices.size()), packed.in()});
  float* to = MutableFloats(rows);
  for (const int32_t index : indices) {
    packed.CopyRow(index, to);
    to += packed.in();
  }
  return rows;
}

at::Tensor CpuOps::RmsNorm(const NormWeights& weights, const at::Tensor& x,
                           double epsilon) const {
  at::Tensor y = Empty(x.sizes());
  kernels::RmsNorm({.x = Floats(x),
                    .weight = Floats(weights.weight),
                    .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                    .size = Size(x, -1),
                    .epsilon = static_cast<float>(epsilon),
                    .y = MutableFloats(y)});
  return y;
}

at::Tensor CpuOps::LayerNorm(const NormWeights& weights, const at::Tensor& x,
                             double epsilon) const {
  at::Tensor y = Empty(x.sizes());
  kernels::LayerNorm({.x = Floats(x),
                      .weight = Floats(weights.weight),
                      .bias = Floats(weights.bias),
                      .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                      .size = Size(x, -1),
                      .epsilon = static_cast<float>(epsilon),
                      .y = MutableFloats(y)});
  return y;
}

void CpuOps::Rotate(const RotaryAngles& angles, int num_heads,
                    at::Tensor& x) const {
  // The angles are already those of these rows: row i takes entry i.
  kernels::ApplyRope({.x = MutableFloats(x),
                      .row_stride = Size(x, 1),
                      .num_rows = Size(x, 0),
                      .num_heads = num_heads,
                      .head_dim = 2 * Size(angles.cosine, 1),
                      .first_position = 0,
                      .cos = Floats(angles.cosine),
                      .sin = Floats(angles.sine)});
}

at::Tensor CpuOps::SiluMul(const at::Tensor& gate_up) const {
  const int size = Size(gate_up, 1) / 2;
  at::Tensor y = Empty({gate_up.size(0), size});
  kernels::SiluMul({.gate_up = Floats(gate_up),
                    .num_rows = Size(gate_up, 0),
                    .size = size,
                    .y = MutableFloats(y)});
  return y;
}

void CpuOps::GeluTanh(at::Tensor& x) const {
  kernels::GeluNew(MutableFloats(x), static_cast<size_t>(x.numel()));
}

void CpuOps::StoreKv(const AttentionRows& rows) const {
  const int kv_size = rows.num_kv_heads() * rows.head_dim();
  const float* keys = FirstRow(rows) + rows.num_heads() * rows.head_dim();
  const auto store = [&](const float* from, const at::Tensor& cache) {
    kernels::StoreKv({.from = from,
                      .from_stride = Size(rows.qkv, 1),
                      .num_rows = rows.num_rows,
                      .row_size = kv_size,
                      .to = PlaceIn(cache, rows.first_position)});
  };
  store(keys, rows.keys);
  store(keys + kv_size, rows.values);
}

void CpuOps::Attend(const AttentionRows& rows, at::Tensor& attended) const {
  const int head_dim = rows.head_dim();
  kernels::Attention(
      {.queries = FirstRow(rows),
       .query_stride = Size(rows.qkv, 1),
       .keys = ElementsOf(rows.keys),
       .values = ElementsOf(rows.values),
       .num_rows = rows.num_rows,
       .first_position = rows.first_position,
       .num_heads = rows.num_heads(),
       .num_kv_heads = rows.num_kv_heads(),
       .head_dim = head_dim,
       .window = rows.window,
       .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
       .out = MutableFloats(attended) + attended.size(1) * rows.first_row});
}

}  // namespace

std::unique_ptr<const Ops> MakeCpuOps() { return std::make_unique<CpuOps>(); }

}  // namespace outrider
