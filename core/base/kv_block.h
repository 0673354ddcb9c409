// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_KV_BLOCK_H_
#define OUTRIDER_CORE_BASE_KV_BLOCK_H_

#include <cstdint>

namespace outrider {

// Names one block of a node's KV memory: the keys and values of kKvBlockLength
// consecutive positions of one session, in all layers (paged attention, Kwon et
// al. 2023). Ids run from 0 to the number of blocks.
using KvBlockId = int32_t;

// Positions a block holds.
inline constexpr int kKvBlockLength = 16;

// The blocks that so many positions need.
inline constexpr int NumKvBlocks(int length) {
  return (length + kKvBlockLength - 1) / kKvBlockLength;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_KV_BLOCK_H_
