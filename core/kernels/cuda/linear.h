// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_LINEAR_H_
#define OUTRIDER_CORE_KERNELS_CUDA_LINEAR_H_

#include "core/kernels/cuda/packed_weight.h"

namespace outrider::kernels::cuda {

// What becomes of a sum, with its bias, before it is written.
enum class Epilogue {
  kStore,    // float32
  kAdd,      // added to what y holds, float32: the residual stream
  kSiluMul,  // silu(gate) * up, of the matrix's type: [num_rows, out / 2]; the
             // matrix is packed as kGate and kUp, its bias is gate's, then up's
  kGelu,     // the tanh approximation ("gelu_new"), of the matrix's type
};

struct LinearArgs {
  PackedMatrix weight = {};
  const void* x = nullptr;      // [num_rows, in], of the matrix's type
  const float* bias = nullptr;  // [out], or null
  int num_rows = 0;
  Epilogue epilogue = Epilogue::kStore;
  void* y = nullptr;  // [num_rows, out], of the epilogue's type; not x
};

// y[m, n] = epilogue(sum over k of x[m, k] * weight[n, k], plus bias[n]), in
// float32 on the tensor cores.
//
// A row of y depends, bit for bit, on its own row of x only: neither on
// num_rows nor on its place among the rows. k is cut into kSlices slices at
// places that depend on `in` alone, each summed with k ascending, and the
// slices are added in their order.
void Linear(const LinearArgs& args, Stream stream);

// The same, bit for bit, by a kernel for more rows than 64.
void LinearOfManyRows(const LinearArgs& args, Stream stream);

// Whether Linear takes that one, on a device of so many multiprocessors.
bool TakesManyRows(const LinearArgs& args, int num_processors);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_LINEAR_H_
