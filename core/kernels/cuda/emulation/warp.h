// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_WARP_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_WARP_H_

#include <cstring>
#include <type_traits>

#include "core/kernels/cuda/emulation/block.h"

// CUDA's operations of a warp; included by device.h alone.

// NOLINTBEGIN: the names are CUDA's.
#define OUTRIDER_SITE \
  const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace outrider::kernels::cuda::emulation {

template <typename T>
T FromPayload(const Payload& payload) {
  T value;
  std::memcpy(&value, payload.bytes, sizeof(T));
  return value;
}

template <typename T>
const Payload* Exchange(unsigned mask, const T& mine, int kind, Site site) {
  static_assert(sizeof(T) <= kPayloadBytes && std::is_trivially_copyable_v<T>);
  return Exchange(mask, &mine, sizeof(T), kind, site);
}

enum Kind { kSyncWarp, kShuffle, kShuffleXor, kBallot, kMma };

template <typename T>
T ReadLane(unsigned mask, const T& mine, int source, Kind kind, Site site) {
  const Payload* all = Exchange(mask, mine, kind, site);
  if ((mask >> source & 1) == 0) Fail("a shuffle reads outside its mask", site);
  return FromPayload<T>(all[source]);
}

}  // namespace outrider::kernels::cuda::emulation

inline void __syncwarp(unsigned mask = ~0u, OUTRIDER_SITE) {
  namespace emulation = outrider::kernels::cuda::emulation;
  emulation::Exchange(mask, nullptr, 0, emulation::kSyncWarp, {file, line});
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, OUTRIDER_SITE) {
  namespace emulation = outrider::kernels::cuda::emulation;
  return emulation::ReadLane(mask, value, source % 32, emulation::kShuffle,
                             {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, OUTRIDER_SITE) {
  namespace emulation = outrider::kernels::cuda::emulation;
  return emulation::ReadLane(mask, value, emulation::Lane() ^ bits,
                             emulation::kShuffleXor, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, bool predicate, OUTRIDER_SITE) {
  namespace emulation = outrider::kernels::cuda::emulation;
  const emulation::Payload* all =
      emulation::Exchange(mask, predicate, emulation::kBallot, {file, line});
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (emulation::FromPayload<bool>(all[lane])) ballot |= 1u << lane;
  }
  return ballot;
}

// NOLINTEND

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_WARP_H_
