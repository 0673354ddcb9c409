// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_

#include "core/kernels/cuda/device_coins.h"

namespace outrider::kernels::cuda {

// The coupled rule's noise of two neighbouring tokens, the first of them even.
__device__ inline CoinBits NoiseOf(uint64_t seed, uint64_t position,
                                   int even_token) {
  constexpr uint32_t kGumbelPurpose = 5u << 24;
  return PhiloxBits(seed, static_cast<uint32_t>(even_token) / 2,
                    static_cast<uint32_t>(position), 0, kGumbelPurpose);
}

// A number in (0, 1): its logarithm is finite.
__device__ inline double OpenUniform(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// One token in the coupled rule's race: the first to arrive is drawn.
struct Racer {
  double time = INFINITY;
  int token = -1;
};

__device__ inline bool IsFirst(const Racer& a, const Racer& b) {
  return a.time < b.time || (a.time == b.time && a.token < b.token);
}

__device__ inline Racer WarpFirst(Racer racer) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    Racer other;
    other.time = __shfl_xor_sync(kAllLanes, racer.time, distance);
    other.token = __shfl_xor_sync(kAllLanes, racer.token, distance);
    if (IsFirst(other, racer)) racer = other;
  }
  return racer;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_
