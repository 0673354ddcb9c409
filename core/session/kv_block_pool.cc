// SPDX-License-Identifier: Apache-2.0
#include "core/session/kv_block_pool.h"

#include <algorithm>

#include "core/base/check.h"

namespace outrider {

KvBlockPool::KvBlockPool(int num_blocks)
    : num_owners_(num_blocks, 0),
      is_kept_(num_blocks, false),
      places_(num_blocks) {
  empty_.reserve(num_blocks);
  for (KvBlockId block = num_blocks; block > 0; --block) {
    empty_.push_back(block - 1);
  }
}

bool KvBlockPool::Take(int count, std::vector<KvBlockId>& table) {
  if (count > num_free()) return false;
  for (int i = 0; i < count; ++i) {
    if (empty_.empty()) Forget(free_kept_.front());
    const KvBlockId block = empty_.back();
    empty_.pop_back();
    OUTRIDER_CHECK(num_owners_[block] == 0) << "block " << block;
    num_owners_[block] = 1;
    table.push_back(block);
  }
  return true;
}

void KvBlockPool::Share(absl::Span<const KvBlockId> blocks) {
  for (const KvBlockId block : blocks) {
    OUTRIDER_CHECK(num_owners_[block] > 0 || is_kept_[block])
        << "block " << block;
    const int num_before = num_owners_[block]++;
    if (num_before == 0) free_kept_.erase(places_[block]);
    if (num_before == 1) ++num_shared_;
  }
}

void KvBlockPool::GiveBack(absl::Span<const KvBlockId> blocks) {
  for (size_t i = blocks.size(); i > 0; --i) {
    const KvBlockId block = blocks[i - 1];
    OUTRIDER_CHECK(num_owners_[block] > 0) << "block " << block;
    const int num_left = --num_owners_[block];
    if (num_left == 1) --num_shared_;
    if (num_left == 0) Free(block);
  }
}

void KvBlockPool::Free(KvBlockId block) {
  if (is_kept_[block]) {
    places_[block] = free_kept_.insert(free_kept_.end(), block);
  } else {
    empty_.push_back(block);
  }
}

void KvBlockPool::Forget(KvBlockId block) {
  if (!is_kept_[block]) return;
  is_kept_[block] = false;
  if (num_owners_[block] > 0) return;
  free_kept_.erase(places_[block]);
  Free(block);
}

bool KvBlockPool::HasOwners(absl::Span<const int> num_owners) const {
  const auto is_free = [](int count) { return count == 0; };
  const auto is_shared = [](int count) { return count > 1; };
  return num_owners == absl::MakeConstSpan(num_owners_) &&
         num_free() ==
             std::count_if(num_owners.begin(), num_owners.end(), is_free) &&
         num_shared() ==
             std::count_if(num_owners.begin(), num_owners.end(), is_shared);
}

}  // namespace outrider
