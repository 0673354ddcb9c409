// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_FREE_BLOCK_COUNT_H_
#define OUTRIDER_CORE_SESSION_FREE_BLOCK_COUNT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/kv_block.h"
#include "core/session/kv_block_pool.h"

namespace outrider {

// How many blocks would be free, had some of them other owners than they have.
// It runs: each block is looked at once where it is added, however often one
// asks meanwhile. The pool must outlive it, and stays as it is from Begin until
// the last question. Confined to the scheduler.
class FreeBlockCount {
 public:
  explicit FreeBlockCount(const KvBlockPool& pool)
      : pool_(pool), changes_(pool.num_total(), 0) {}

  // Begins with the owners that there are.
  void Begin();
  // One owner more for each; one fewer, where a block of several owners may
  // come several times.
  void Share(absl::Span<const KvBlockId> blocks) { Change(blocks, 1); }
  void GiveBack(absl::Span<const KvBlockId> blocks) { Change(blocks, -1); }

  int num_free() const { return num_free_; }
  int64_t num_looked_at() const { return num_looked_at_; }  // ever; for tests

 private:
  void Change(absl::Span<const KvBlockId> blocks, int change);

  const KvBlockPool& pool_;
  std::vector<int> changes_;  // in the number of owners, by block
  // Those in which there are any: to begin costs no more than was counted.
  std::vector<KvBlockId> changed_;
  int num_free_ = 0;
  int64_t num_looked_at_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_FREE_BLOCK_COUNT_H_
