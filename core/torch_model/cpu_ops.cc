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

// Takes a float32 or bfloat16 tensor.
kernels::ConstElements ElementsOf(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  if (tensor.scalar_type() == at::kFloat) return tensor.const_data_ptr<float>();
  OUTRIDER_CHECK(tensor.scalar_type() == at::kBFloat16);
  return static_cast<const kernels::BFloat16*>(tensor.const_data_ptr());
}

// Takes contiguous activations.
const float* Floats(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  return tensor.const_data_ptr<float>();
}

int Size(const at::Tensor& tensor, int dimension) {
  return static_cast<int>(tensor.size(dimension));
}

// Not through the dispatcher: a step makes several of these in every layer.
at::Tensor NewFloats(at::IntArrayRef sizes) {
  return at::detail::empty_cpu(sizes, at::kFloat);
}

void RunLinear(const LinearWeights& weights, const at::Tensor& x,
               const kernels::Execution& execution, kernels::Output output,
               at::Tensor& y) {
  const kernels::PackedWeight& packed = *weights.matrix.packed;
  OUTRIDER_CHECK(x.size(1) == packed.in()) << x.size(1);
  OUTRIDER_CHECK(y.is_contiguous() && y.size(0) == x.size(0) &&
                 y.size(1) == packed.out());
  kernels::Linear(
      {.x = Floats(x),
       .num_rows = Size(x, 0),
       .weight = &packed,
       .bias = weights.bias.defined() ? Floats(weights.bias) : nullptr,
       .y = y.mutable_data_ptr<float>(),
       .output = output},
      execution);
}

struct HeadCounts {
  int num_heads;
  int num_kv_heads;
  int head_dim;
};

HeadCounts CountHeads(const AttentionPass& pass) {
  const int num_kv_heads = Size(pass.keys, 2);
  const int head_dim = Size(pass.keys, 3);
  return {Size(pass.qkv, 1) / head_dim - 2 * num_kv_heads, num_kv_heads,
          head_dim};
}

kernels::Elements MutableElementsOf(const at::Tensor& tensor) {
  OUTRIDER_CHECK(tensor.is_contiguous());
  if (tensor.scalar_type() == at::kFloat) {
    return tensor.mutable_data_ptr<float>();
  }
  OUTRIDER_CHECK(tensor.scalar_type() == at::kBFloat16);
  return static_cast<kernels::BFloat16*>(tensor.mutable_data_ptr());
}

class CpuOps final : public Ops {
 public:
  CpuOps(kernels::Level level, int num_threads)
      : pool_(num_threads), execution_(level, &pool_) {}

  std::string numerics() const override {
    return kernels::LevelName(execution_.level());
  }
  Matrix Prepare(Matrix matrix) const override;
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

 private:
  kernels::ThreadPool pool_;
  const kernels::Execution execution_;
  mutable kernels::WeightMemory weight_memory_;
};

Matrix CpuOps::Prepare(Matrix matrix) const {
  const at::Tensor& tensor = matrix.tensor;
  if (!tensor.defined()) return matrix;
  const std::vector<kernels::WeightRows> parts = {
      {.elements = ElementsOf(tensor), .num_rows = Size(tensor, 0)}};
  return {.packed = std::make_shared<const kernels::PackedWeight>(
              parts, Size(tensor, 1), &weight_memory_)};
}

at::Tensor CpuOps::Linear(const LinearWeights& weights,
                          const at::Tensor& x) const {
  at::Tensor y = NewFloats({x.size(0), weights.matrix.packed->out()});
  RunLinear(weights, x, execution_, kernels::Output::kReplace, y);
  return y;
}

void CpuOps::AddLinear(const LinearWeights& weights, const at::Tensor& x,
                       at::Tensor& sum) const {
  RunLinear(weights, x, execution_, kernels::Output::kAdd, sum);
}

at::Tensor CpuOps::Embed(const Matrix& table,
                         absl::Span<const int32_t> indices) const {
  const kernels::PackedWeight& packed = *table.packed;
  at::Tensor rows =
      NewFloats({static_cast<int64_t>(indices.size()), packed.in()});
  float* to = rows.mutable_data_ptr<float>();
  for (const int32_t index : indices) {
    packed.CopyRow(index, to);
    to += packed.in();
  }
  return rows;
}

at::Tensor CpuOps::RmsNorm(const NormWeights& weights, const at::Tensor& x,
                           double epsilon) const {
  at::Tensor y = NewFloats(x.sizes());
  kernels::RmsNorm({.x = Floats(x),
                    .weight = Floats(weights.weight),
                    .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                    .size = Size(x, -1),
                    .epsilon = static_cast<float>(epsilon),
                    .y = y.mutable_data_ptr<float>()},
                   execution_);
  return y;
}

at::Tensor CpuOps::LayerNorm(const NormWeights& weights, const at::Tensor& x,
                             double epsilon) const {
  at::Tensor y = NewFloats(x.sizes());
  kernels::LayerNorm({.x = Floats(x),
                      .weight = Floats(weights.weight),
                      .bias = Floats(weights.bias),
                      .num_rows = static_cast<int>(x.numel() / x.size(-1)),
                      .size = Size(x, -1),
                      .epsilon = static_cast<float>(epsilon),
                      .y = y.mutable_data_ptr<float>()},
                     execution_);
  return y;
}

void CpuOps::Rotate(const RotaryAngles& angles, int num_heads,
                    at::Tensor& x) const {
  const int head_dim = 2 * Size(angles.cosine, 1);
  OUTRIDER_CHECK(x.is_contiguous() && num_heads * head_dim <= x.size(1));
  // The angles are already those of these rows: row i takes entry i.
  kernels::ApplyRope({.x = x.mutable_data_ptr<float>(),
                      .row_stride = Size(x, 1),
                      .num_rows = Size(x, 0),
                      .num_heads = num_heads,
                      .head_dim = head_dim,
                      .first_position = 0,
                      .cos = Floats(angles.cosine),
                      .sin = Floats(angles.sine)},
                     execution_);
}

at::Tensor CpuOps::SiluMul(const at::Tensor& gate_up) const {
  const int size = Size(gate_up, 1) / 2;
  at::Tensor y = NewFloats({gate_up.size(0), size});
  kernels::SiluMul({.gate_up = Floats(gate_up),
                    .num_rows = Size(gate_up, 0),
                    .size = size,
                    .y = y.mutable_data_ptr<float>()},
                   execution_);
  return y;
}

at::Tensor CpuOps::GeluTanh(const at::Tensor& x) const {
  at::Tensor y = x.clone();
  kernels::GeluNew(y.mutable_data_ptr<float>(), static_cast<size_t>(y.numel()),
                   execution_);
  return y;
}

void CpuOps::StoreKv(const AttentionPass& pass) const {
  const HeadCounts heads = CountHeads(pass);
  const int row_size = heads.num_kv_heads * heads.head_dim;
  const float* keys =
      Floats(pass.qkv) + int64_t{heads.num_heads} * heads.head_dim;
  const auto store = [&](const float* from, const at::Tensor& blocks) {
    kernels::StoreKv({.segments = pass.segments,
                      .from = from,
                      .from_stride = Size(pass.qkv, 1),
                      .row_size = row_size,
                      .to = MutableElementsOf(blocks)},
                     execution_);
  };
  store(keys, pass.keys);
  store(keys + row_size, pass.values);
}

void CpuOps::Attend(const AttentionPass& pass, at::Tensor& attended) const {
  const HeadCounts heads = CountHeads(pass);
  OUTRIDER_CHECK(attended.is_contiguous() &&
                 attended.size(1) == int64_t{heads.num_heads} * heads.head_dim);
  kernels::Attention(
      {.segments = pass.segments,
       .queries = Floats(pass.qkv),
       .query_stride = Size(pass.qkv, 1),
       .keys = ElementsOf(pass.keys),
       .values = ElementsOf(pass.values),
       .num_heads = heads.num_heads,
       .num_kv_heads = heads.num_kv_heads,
       .head_dim = heads.head_dim,
       .window = pass.window,
       .scale = 1.0f / std::sqrt(static_cast<float>(heads.head_dim)),
       .out = attended.mutable_data_ptr<float>()},
      execution_);
}

}  // namespace

std::unique_ptr<const Ops> MakeCpuOps(kernels::Level level, int num_threads) {
  return std::make_unique<CpuOps>(level, num_threads);
}

}  // namespace outrider
