// SPDX-License-Identifier: Apache-2.0
#include "core/session/kv_block_pool.h"

#include "core/base/check.h"

namespace outrider {

KvBlockPool::KvBlockPool(int num_blocks) : num_owners_(num_blocks, 0) {
  free_.reserve(num_blocks);
  for (KvBlockId block = num_blocks; block > 0; --block) {
    free_.push_back(block - 1);
  }
}

bool KvBlockPool::Take(int count, std::vector<KvBlockId>& table) {
  if (count > num_free()) return false;
  for (int i = 0; i < count; ++i) {
    const KvBlockId block = free_.back();
    free_.pop_back();
    OUTRIDER_CHECK(num_owners_[block] == 0) << "block " << block;
    num_owners_[block] = 1;
    table.push_back(block);
  }
  return true;
}

void KvBlockPool::Share(absl::Span<const KvBlockId> blocks) {
  for (const KvBlockId block : blocks) {
    OUTRIDER_CHECK(num_owners_[block] > 0) << "block " << block;
    ++num_owners_[block];
  }
}

void KvBlockPool::GiveBack(absl::Span<const KvBlockId> blocks) {
  for (const KvBlockId block : blocks) {
    OUTRIDER_CHECK(num_owners_[block] > 0) << "block " << block;
    if (--num_owners_[block] == 0) free_.push_back(block);
  }
}

}  // namespace outrider
