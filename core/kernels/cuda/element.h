// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ELEMENT_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ELEMENT_H_

#include <cstdint>

// C++17 without any header of CUDA, as every header of this folder: nvcc and
// the host's compilers read them alike.

struct CUstream_st;
struct CUgraphExec_st;
struct CUevent_st;

namespace outrider::kernels::cuda {

// A cudaStream_t, a cudaGraphExec_t and a cudaEvent_t.
using Stream = CUstream_st*;
using Graph = CUgraphExec_st*;
using Event = CUevent_st*;

// What weights, caches and the inputs of matrix products are made of. The
// residual stream, sums and logits are float32.
enum class Element { kBFloat16, kFloat16 };

struct Bf16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ELEMENT_H_
