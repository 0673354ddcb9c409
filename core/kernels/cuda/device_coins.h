// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_DEVICE_COINS_H_
#define OUTRIDER_CORE_KERNELS_CUDA_DEVICE_COINS_H_

#include "core/kernels/cuda/device.h"

// The coins of core/sampling/coins.cc; tests hold one against the other.
namespace outrider::kernels::cuda {

struct CoinBits {
  uint64_t bits[2];
};

// Philox4x32-10.
__device__ inline CoinBits PhiloxBits(uint64_t seed, uint32_t c0, uint32_t c1,
                                      uint32_t c2, uint32_t c3) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
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

// The coin that draws a draft token: in [0, 1), with 53 random bits.
__device__ inline double DraftUniform(uint64_t seed, uint64_t position,
                                      uint64_t generation) {
  constexpr uint32_t kDraftPurpose = 1u << 24;
  const auto high = static_cast<uint32_t>(generation >> 32 & 0xffffffu);
  const CoinBits coin =
      PhiloxBits(seed, 0, static_cast<uint32_t>(position),
                 static_cast<uint32_t>(generation), kDraftPurpose | high);
  return static_cast<double>(coin.bits[0] >> 11) * 0x1p-53;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_DEVICE_COINS_H_
