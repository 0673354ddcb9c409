// SPDX-License-Identifier: Apache-2.0
#include "core/session/free_block_count.h"

namespace outrider {

void FreeBlockCount::Begin() {
  for (const KvBlockId block : changed_) changes_[block] = 0;
  changed_.clear();
  num_free_ = pool_.num_free();
}

void FreeBlockCount::Change(absl::Span<const KvBlockId> blocks, int change) {
  for (const KvBlockId block : blocks) {
    const int num_before = pool_.num_owners(block) + changes_[block];
    changes_[block] += change;
    changed_.push_back(block);
    if (num_before == 0) --num_free_;
    if (num_before + change == 0) ++num_free_;
  }
  num_looked_at_ += static_cast<int64_t>(blocks.size());
}

}  // namespace outrider
