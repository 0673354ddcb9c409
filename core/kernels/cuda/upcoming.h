// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_UPCOMING_H_
#define OUTRIDER_CORE_KERNELS_CUDA_UPCOMING_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/packed_weight.h"

namespace outrider::kernels::cuda {

// Weights that the next matrix product reads. A kernel that takes a few
// microseconds and leaves the memory idle has them brought to the second-level
// cache meanwhile: a hint, and nothing on devices before sm_90.
struct Upcoming {
  const void* begin = nullptr;
  size_t bytes = 0;  // a multiple of 16
};

// About what the memory brings in the time of those kernels: a norm's, and that
// of RotateStore and the attention behind it.
constexpr size_t kUpcomingOfNorm = size_t{6} << 20;
constexpr size_t kUpcomingOfAttention = size_t{24} << 20;

// Its first bytes. Of long passes none: those are not bound by memory.
inline Upcoming FirstOf(const PackedMatrix& matrix, int num_rows, size_t most) {
  constexpr int kMostRows = 64;
  if (num_rows > kMostRows) return {};
  const size_t bytes = PackedBytes(matrix.out, matrix.in);
  return {matrix.tiles, bytes < most ? bytes : most};
}

// Blocks of threads that a launch has besides its own for them.
constexpr int kUpcomingBlocks = 128;
inline int NumBlocksFor(const Upcoming& upcoming) {
  return upcoming.bytes > 0 ? kUpcomingBlocks : 0;
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_UPCOMING_H_
