// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_

#include "core/kernels/cuda/device.h"

namespace outrider::kernels::cuda {

// The random bits of two neighbouring tokens, the first of them even.
struct NoisePair {
  uint64_t bits[2];
};

// Philox4x32-10 as core/sampling/coins.cc asks it for the coupled rule's noise;
// a test holds one against the other.
__device__ inline NoisePair NoiseOf(uint64_t seed, uint64_t position,
                                    int even_token) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr uint32_t kGumbelPurpose = 5u << 24;
  constexpr int kRounds = 10;
  uint32_t c0 = static_cast<uint32_t>(even_token) / 2;
  uint32_t c1 = static_cast<uint32_t>(position);
  uint32_t c2 = 0, c3 = kGumbelPurpose;
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * c0, product1 = kMultiplier1 * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {{static_cast<uint64_t>(c1) << 32 | c0,
           static_cast<uint64_t>(c3) << 32 | c2}};
}

// In (0, 1), of which the logarithm is finite.
__device__ inline double OpenUniform(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_RACE_NOISE_H_
