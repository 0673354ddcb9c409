// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_BLOCK_ENTRIES_H_
#define OUTRIDER_CORE_MODEL_BLOCK_ENTRIES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/kv_block.h"

namespace outrider {

// KV blocks of a model that has no tensors: one entry a position. Blocks take
// memory from when they are first written.
template <typename Entry>
class BlockEntries {
 public:
  explicit BlockEntries(Entry unwritten) : unwritten_(unwritten) {}

  void Allocate(int num_blocks) {
    OUTRIDER_CHECK(num_blocks_ == 0) << "allocated twice";
    num_blocks_ = num_blocks;
  }

  void Set(absl::Span<const KvBlockId> table, int position, Entry entry) {
    Block(BlockOf(table, position))[position % kKvBlockLength] = entry;
  }
  Entry Get(absl::Span<const KvBlockId> table, int position) const {
    const auto block = static_cast<size_t>(BlockOf(table, position));
    return block < blocks_.size() ? blocks_[block][position % kKvBlockLength]
                                  : unwritten_;
  }
  // What Get gives for the first `length` positions, block by block: a context
  // may have a quarter of a million.
  std::vector<Entry> First(absl::Span<const KvBlockId> table,
                           int length) const {
    std::vector<Entry> entries(static_cast<size_t>(length), unwritten_);
    for (int i = 0; i < length; i += kKvBlockLength) {
      const auto block = static_cast<size_t>(BlockOf(table, i));
      if (block >= blocks_.size()) continue;
      std::copy_n(blocks_[block].begin(), std::min(kKvBlockLength, length - i),
                  entries.begin() + i);
    }
    return entries;
  }
  void Copy(KvBlockId from, KvBlockId to) {
    const Entries entries = Block(from);  // a new block may move the others
    Block(to) = entries;
  }
  // Makes a block as it was before it was first written.
  void Clear(KvBlockId block) { Block(block).fill(unwritten_); }

 private:
  using Entries = std::array<Entry, kKvBlockLength>;

  static KvBlockId BlockOf(absl::Span<const KvBlockId> table, int position) {
    OUTRIDER_CHECK(position >= 0 && static_cast<size_t>(position) <
                                        table.size() * kKvBlockLength)
        << "position " << position << " of " << table.size() << " blocks";
    return table[position / kKvBlockLength];
  }
  Entries& Block(KvBlockId block) {
    OUTRIDER_CHECK(block >= 0 && block < num_blocks_)
        << "block " << block << " of " << num_blocks_;
    const auto index = static_cast<size_t>(block);
    while (blocks_.size() <= index) blocks_.emplace_back().fill(unwritten_);
    return blocks_[index];
  }

  const Entry unwritten_;
  int num_blocks_ = 0;
  std::vector<Entries> blocks_;  // those up to the last one ever written
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_BLOCK_ENTRIES_H_
