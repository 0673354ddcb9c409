// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_OPS_H_
#define OUTRIDER_CORE_TORCH_MODEL_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "core/kernels/attention.h"
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

// The rows of a pass, session after session, over the keys and values of one
// layer.
struct AttentionPass {
  // [rows, (num_heads + 2 * num_kv_heads) * head_dim]: a row's queries, then
  // its keys, then its values, head by head.
  at::Tensor qkv = {};
  absl::Span<const kernels::KvSegment> segments = {};
  // [num_blocks, kKvBlockLength, num_kv_heads, head_dim]
  at::Tensor keys = {};
  at::Tensor values = {};
  int window = 0;  // keys a row sees, its own included; 0 means all
};

// The dense primitives of the forward pass. "Activations" are float32, whatever
// the weights are. Arguments and results are contiguous. What an
// operation changes in place is its last argument. Used by the model's thread
// only.
class Ops {
 public:
  virtual ~Ops() = default;

  // ModelInfo::numerics.
  virtual std::string numerics() const = 0;

  // The matrix as these ops want it; called once, after loading.
  virtual Matrix Prepare(Matrix matrix) const = 0;

  // [num_rows, in] -> [num_rows, out]. With a bfloat16 matrix x may be rounded
  // to bfloat16 too.
  virtual at::Tensor Linear(const LinearWeights& weights,
                            const at::Tensor& x) const = 0;
  // Adds the same to `sum`, [num_rows, out]: the residual stream.
  virtual void AddLinear(const LinearWeights& weights, const at::Tensor& x,
                         at::Tensor& sum) const = 0;
  // Rows of a [num_entries, size] table -> [indices.size(), size]
  virtual at::Tensor Embed(const Matrix& table,
                           absl::Span<const int32_t> indices) const = 0;
  // Normalises over the last dimension.
  virtual at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                             double epsilon) const = 0;
  virtual at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                               double epsilon) const = 0;
  // Turns element i of a head with element i + head_dim / 2 by the row's i-th
  // angle, in the first num_heads heads of each row of x, [num_rows, >=
  // num_heads * head_dim].
  virtual void Rotate(const RotaryAngles& angles, int num_heads,
                      at::Tensor& x) const = 0;
  // [num_rows, 2 * size], gate before up -> [num_rows, size]: silu(gate) * up
  virtual at::Tensor SiluMul(const at::Tensor& gate_up) const = 0;
  // The tanh approximation ("gelu_new").
  virtual at::Tensor GeluTanh(const at::Tensor& x) const = 0;

  // Copies the rows' keys and values to their positions in the blocks.
  virtual void StoreKv(const AttentionPass& pass) const = 0;
  // Each row attends to exactly the keys of its own session up to its own
  // position: its result does not depend on the other rows of the pass. Query
  // head h uses kv head h / (num_heads / num_kv_heads). Fills `attended`,
  // [rows, num_heads * head_dim].
  virtual void Attend(const AttentionPass& pass,
                      at::Tensor& attended) const = 0;
};

// Torch's own operations: the reference.
std::unique_ptr<const Ops> MakeAtenOps();
// The kernels of core/kernels: a row's result is the same, bit for bit,
// however many rows a call has and on however many threads it runs.
std::unique_ptr<const Ops> MakeCpuOps(kernels::Level level, int num_threads);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_OPS_H_
