// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_DISPATCH_H_
#define OUTRIDER_CORE_KERNELS_DISPATCH_H_

#include <vector>

namespace outrider::kernels {

// Which instructions the kernels use. Each level is a full set of kernels;
// results of two levels may differ in the last bits, results of one level
// depend on nothing but the inputs of their own row.
enum class Level {
  kPortable,    // what the compiler makes of plain C++
  kAvx2,        // with FMA
  kAvx512,      // F, BW, DQ, VL
  kAvx512Bf16,  // and vdpbf16ps
  kAmxBf16,     // and tdpbf16ps on tiles
};

// The highest level of this CPU; asked once. Thread-safe.
Level BestLevel();

// The levels that this CPU can run, lowest first.
std::vector<Level> SupportedLevels();

// "portable", "avx2", "avx512", "avx512_bf16", "amx_bf16".
const char* LevelName(Level level);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_DISPATCH_H_
