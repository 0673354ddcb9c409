// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_
#define OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_

#include <list>
#include <vector>

#include "absl/types/span.h"
#include "core/base/kv_block.h"

namespace outrider {

// Who owns which KV block: a free list and a count of owners for each block.
// Invariant: owned + free = total, where a block of several owners counts once.
// A free block may be a kept one: what it holds may be wanted again, and it is
// taken last, the longest free first. Knows no memory and no sessions. Confined
// to the scheduler.
class KvBlockPool {
 public:
  explicit KvBlockPool(int num_blocks);

  int num_total() const { return static_cast<int>(num_owners_.size()); }
  int num_free() const { return num_empty() + num_free_kept(); }
  int num_free_kept() const { return static_cast<int>(free_kept_.size()); }
  int num_shared() const { return num_shared_; }  // with several owners

  // Appends `count` blocks with one owner each to `table`; false, and nothing
  // changed, where fewer are free.
  [[nodiscard]] bool Take(int count, std::vector<KvBlockId>& table);
  // One owner more for each, of blocks that are owned or kept.
  void Share(absl::Span<const KvBlockId> blocks);
  // One owner fewer for each, the last one first; a block without owners is
  // free at once.
  void GiveBack(absl::Span<const KvBlockId> blocks);

  void Keep(KvBlockId block) { is_kept_[block] = true; }
  void Forget(KvBlockId block);
  bool IsKept(KvBlockId block) const { return is_kept_[block]; }
  int num_owners(KvBlockId block) const { return num_owners_[block]; }
  bool HasOneOwner(KvBlockId block) const { return num_owners_[block] == 1; }
  // Whether its owner may change what it holds.
  bool IsWritable(KvBlockId block) const {
    return HasOneOwner(block) && !is_kept_[block];
  }

  // Whether each block has so many owners, and the rest is free; for tests.
  bool HasOwners(absl::Span<const int> num_owners) const;

 private:
  int num_empty() const { return static_cast<int>(empty_.size()); }
  void Free(KvBlockId block);

  std::vector<int> num_owners_;  // by block
  std::vector<bool> is_kept_;    // by block
  int num_shared_ = 0;
  std::vector<KvBlockId> empty_;    // a stack: what was used last is still warm
  std::list<KvBlockId> free_kept_;  // the longest free first
  std::vector<std::list<KvBlockId>::iterator> places_;  // of those, by block
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_KV_BLOCK_POOL_H_
