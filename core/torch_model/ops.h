// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_OPS_H_
#define OUTRIDER_CORE_TORCH_MODEL_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "core/kernels/linear.h"

namespace outrider {

// A [out, in] matrix, row-major, or in the order in which the kernels of
// core/kernels read it. Only the Ops that packed it can use it then.
struct Matrix {
  at::Tensor tensor = {};
  std::shared_ptr<const kernels::PackedWeight> packed = {};
};

// y = x W^T + b.
struct LinearWeights {
  Matrix matrix = {};
  at::Tensor bias = {};  // [out] activations, or undefined
};

struct NormWeights {
  at::Tensor weight = {};  // [size] float32
  at::Tensor bias = {};    // [size] float32, or undefined
};

// The angles of some rows.
struct RotaryAngles {
  at::Tensor cosine = {};  // [num_rows, head_dim / 2] float32
  at::Tensor sine = {};    // [num_rows, head_dim / 2] float32
};

// The rows of one session in one layer, and the session's cache there. In each
// row of `qkv`, of all rows of the pass, stand heads of queries, of keys and of
// values: [.., (num_heads + 2 * num_kv_heads) * head_dim].
struct AttentionRows {
  at::Tensor qkv = {};
  int first_row = 0;  // of the session, in qkv
  int num_rows = 0;
  at::Tensor keys = {};    // [capacity, num_kv_heads, head_dim]
  at::Tensor values = {};  // [capacity, num_kv_heads, head_dim]
  int first_position = 0;  // of first_row
  int window = 0;          // keys a row sees, its own included; 0 means all

  int num_kv_heads() const { return static_cast<int>(keys.size(1)); }
  int head_dim() const { return static_cast<int>(keys.size(2)); }
  int num_heads() const {
    return static_cast<int>(qkv.size(1)) / head_dim() - 2 * num_kv_heads();
  }
};

// The dense primitives of the forward pass: what a device does its own way.
// "Activations" are float32 on the CPU, whatever the weights are, and of the
// weights' dtype on a GPU. All tensors are contiguous. Immutable; used by the
// model's thread only.
class Ops {
 public:
  virtual ~Ops() = default;

  // The matrix as these ops want it; called once, after loading.
  virtual Matrix Prepare(Matrix matrix) const = 0;

  // [num_rows, in] -> [num_rows, out]. With a bfloat16 matrix x may be rounded
  // to bfloat16 too.
  virtual at::Tensor Linear(const LinearWeights& weights,
                            const at::Tensor& x) const = 0;
  // Adds what Linear gives to y: a residual. y is not x.
  virtual void AddLinear(const LinearWeights& weights, const at::Tensor& x,
                         at::Tensor& y) const = 0;
  // Rows of a [num_entries, size] table -> [indices.size(), size]
  virtual at::Tensor Embed(const Matrix& table,
                           absl::Span<const int32_t> indices) const = 0;
  // Over the last dimension.
  virtual at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                             double epsilon) const = 0;
  virtual at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                               double epsilon) const = 0;
  // Turns, in the first `num_heads` heads of each row, element i of the head
  // with element i + head_dim / 2 by the row's i-th angle.
  // x: [num_rows, at least num_heads * head_dim]
  virtual void Rotate(const RotaryAngles& angles, int num_heads,
                      at::Tensor& x) const = 0;
  // [num_rows, 2 * size], gate before up -> [num_rows, size]: silu(gate) * up
  virtual at::Tensor SiluMul(const at::Tensor& gate_up) const = 0;
  // The tanh approximation ("gelu_new").
  virtual void GeluTanh(at::Tensor& x) const = 0;

  // Puts the rows' keys and values into the cache, at their positions.
  virtual void StoreKv(const AttentionRows& rows) const = 0;
  // Each row attends to exactly the cached keys up to its own position: its
  // result does not depend on the other rows. Query head h uses kv head
  // h / (num_heads / num_kv_heads). The results are rows first_row and after
  // of `attended`, [rows of the pass, num_heads * head_dim].
  virtual void Attend(const AttentionRows& rows,
                      at::Tensor& attended) const = 0;
};

// Torch's own operations: the reference, and what runs on a GPU.
std::unique_ptr<const Ops> MakeAtenOps();
// The kernels of core/kernels: a row's result is the same, bit for bit,
// however many rows a call has.
std::unique_ptr<const Ops> MakeCpuOps();

// The dtype of activations for these weights on this device.
inline at::ScalarType ActivationDtype(at::ScalarType weights,
                                      at::Device device) {
  return device.is_cpu() ? at::kFloat : weights;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_OPS_H_
