// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_BRING_TO_CACHE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_BRING_TO_CACHE_H_

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/upcoming.h"

namespace outrider::kernels::cuda {

// Asks for bytes, a multiple of 16. Nobody waits for what comes.
__device__ inline void BringToCache([[maybe_unused]] const unsigned char* from,
                                    [[maybe_unused]] uint32_t bytes) {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from),
               "r"(bytes)
               : "memory");
#endif
#elif !defined(__CUDACC__)
  emulation::CheckReadable(from, bytes);
#endif
}

// Asks for the share of one of `num_blocks` blocks of threads, in pieces, by
// its first warp.
__device__ inline void BringToCache(const Upcoming& upcoming, int block,
                                    int num_blocks) {
  constexpr size_t kPiece = 4096;
  if (threadIdx.x >= kWarpSize) return;
  const auto first = static_cast<size_t>(block) * kWarpSize + threadIdx.x;
  for (size_t at = first * kPiece; at < upcoming.bytes;
       at += static_cast<size_t>(num_blocks) * kWarpSize * kPiece) {
    const size_t left = upcoming.bytes - at;
    BringToCache(static_cast<const unsigned char*>(upcoming.begin) + at,
                 static_cast<uint32_t>(left < kPiece ? left : kPiece));
  }
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_BRING_TO_CACHE_H_
