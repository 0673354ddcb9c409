// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_
#define OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_

#include <vector>

#include "absl/types/span.h"
#include "core/base/kv_block.h"

namespace outrider {

// Who owns which KV block: a free list and a count of owners for each block.
// Invariant: owned + free = total. Knows no memory and no sessions. Confined to
// the scheduler's thread.
class KvBlockPool {
 public:
  explicit KvBlockPool(int num_blocks);

  int num_total() const { return static_cast<int>(num_owners_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }

  // Appends `count` blocks with one owner each to `table`; false, and nothing
  // changed, where fewer are free.
  [[nodiscard]] bool Take(int count, std::vector<KvBlockId>& table);
  // One owner more for each: a prefix that two sessions share.
  void Share(absl::Span<const KvBlockId> blocks);
  // One owner fewer for each; a block without owners is free at once.
  void GiveBack(absl::Span<const KvBlockId> blocks);
  bool IsShared(KvBlockId block) const { return num_owners_[block] > 1; }

 private:
  std::vector<int> num_owners_;  // by block
  std::vector<KvBlockId> free_;  // a stack: what was used last is still warm
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_
