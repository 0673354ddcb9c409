// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_OPS_H_
#define OUTRIDER_CORE_TORCH_MODEL_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace outrider {

// The dense primitives of the forward pass, one small function each: the only
// place that chooses how they are computed. All tensors are contiguous.
//
// "Activations" are float32 on the CPU, whatever the weights are, and of the
// weights' dtype on a GPU. Norm weights are float32, biases as activations.

// y = x W^T + b. `weight` is [out, in]; `bias` is [out] or undefined.
struct LinearWeights {
  at::Tensor weight = {};
  at::Tensor bias = {};
};

// `bias` is undefined where the norm has none.
struct NormWeights {
  at::Tensor weight = {};  // [size] float32
  at::Tensor bias = {};    // [size] float32
};

// The dtype of activations for these weights on this device.
at::ScalarType ActivationDtype(at::ScalarType weights, at::Device device);

// [num_rows, in] activations -> [num_rows, out] activations.
at::Tensor Linear(const LinearWeights& weights, const at::Tensor& x);

// Rows of `table` [num_entries, size] -> [indices.size(), size] activations.
at::Tensor Embed(const at::Tensor& table, absl::Span<const int32_t> indices);

// [num_rows, size] -> [indices.size(), size].
at::Tensor SelectRows(const at::Tensor& x, absl::Span<const int32_t> indices);

// Over the last dimension; the same shape and dtype come back.
at::Tensor RmsNorm(const NormWeights& weights, const at::Tensor& x,
                   double epsilon);
at::Tensor LayerNorm(const NormWeights& weights, const at::Tensor& x,
                     double epsilon);

// Turns element i of each head with element i + head_dim / 2 by the row's
// angle. x: [num_rows, num_heads, head_dim]; cosine, sine: [num_rows,
// head_dim / 2] float32. x need not be contiguous; the result is.
at::Tensor Rotate(const at::Tensor& x, const at::Tensor& cosine,
                  const at::Tensor& sine);

// [num_rows, 2 * size], gate before up -> [num_rows, size]: silu(gate) * up.
at::Tensor SiluMul(const at::Tensor& gate_up);

// The tanh approximation ("gelu_new").
at::Tensor GeluTanh(const at::Tensor& x);

// Keys or values of one session in one layer: the first rows of a
// [capacity, num_kv_heads, head_dim] buffer of the weights' dtype.
void StoreRows(at::Tensor& cache, int first_row, const at::Tensor& rows);

// Row r of `queries` [num_rows, num_heads, head_dim] stands at position
// first_position + r and attends to the cached positions up to its own, the
// last `window` of them where `window` > 0. It gets exactly these keys, so its
// result does not depend on the other rows of the call. Query head h uses kv
// head h / (num_heads / num_kv_heads). -> [num_rows, num_heads * head_dim]
struct AttentionInput {
  at::Tensor queries = {};
  at::Tensor keys = {};    // [capacity, num_kv_heads, head_dim]
  at::Tensor values = {};  // [capacity, num_kv_heads, head_dim]
  int first_position = 0;
  int window = 0;
};
at::Tensor Attend(const AttentionInput& input);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_OPS_H_
