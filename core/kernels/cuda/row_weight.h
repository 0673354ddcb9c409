// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ROW_WEIGHT_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ROW_WEIGHT_H_

#include "core/kernels/cuda/device.h"

namespace outrider::kernels::cuda {

// The weight of a logit in a row whose greatest is `top`; `scale` is log2(e) /
// temperature. The difference is taken in double, lest its rounding grow with
// the scale.
__device__ inline float RowWeight(double logit, float top, double scale) {
  const double distance = logit - static_cast<double>(top);
  return exp2f(static_cast<float>(distance * scale));
}

// Rises with the logit; 0 and -0 are equal.
__device__ inline unsigned KeyOf(float logit) {
  constexpr unsigned kSign = 0x80000000u;
  const unsigned bits = logit == 0.0f ? 0u : __float_as_uint(logit);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// The sum of the warp's 32 values, the same bits in every lane.
__device__ inline double WarpSumOfDoubles(double x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ROW_WEIGHT_H_
