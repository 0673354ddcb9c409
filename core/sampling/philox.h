// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_PHILOX_H_
#define OUTRIDER_CORE_SAMPLING_PHILOX_H_

#include <array>
#include <cstdint>

namespace outrider {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3"): 128 random bits as a function of a counter and a key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_PHILOX_H_
