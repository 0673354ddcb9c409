// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_PHILOX_H_
#define OUTRIDER_CORE_SAMPLING_PHILOX_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"

namespace outrider {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3"): 128 random bits as a function of a counter and a key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

// The same for counter[0], counter[0] + 1, ...: `bits`, of even size, gets two
// values for each, the first with word 0 in its lower and word 1 in its upper
// half, the second with words 2 and 3.
void PhiloxRun(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key,
               absl::Span<uint64_t> bits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_PHILOX_H_
