// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_NORM_H_
#define OUTRIDER_CORE_KERNELS_CUDA_NORM_H_

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

struct NormArgs {
  Element element = Element::kBFloat16;  // of y
  const float* x = nullptr;              // [rows, size]
  // [num_rows]: which row of x becomes row i of y; null: row i itself.
  const int* rows = nullptr;
  const float* weight = nullptr;  // [size]
  const float* bias = nullptr;    // [size], or null; LayerNorm only
  int num_rows = 0;
  int size = 0;  // a multiple of 4
  float epsilon = 0.0f;
  void* y = nullptr;  // [num_rows, size]
};

// y = x / sqrt(mean(x^2) + epsilon) * weight. As of all kernels here, a row's
// bits depend on its own values only.
void RmsNorm(const NormArgs& args, Stream stream);

// y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
void LayerNorm(const NormArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_NORM_H_
