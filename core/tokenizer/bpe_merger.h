// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_BPE_MERGER_H_
#define OUTRIDER_CORE_TOKENIZER_BPE_MERGER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// One rule: these two neighbours become `merged`. The earlier in the list, the
// sooner it is applied.
struct BpeMerge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId merged = 0;
};

// Applies byte-pair merges, lowest rank first and leftmost first among equals,
// in O(n log n) for n symbols. Immutable and thread-safe.
class BpeMerger {
 public:
  // The later of two rules for one pair counts, as in the reference.
  explicit BpeMerger(absl::Span<const BpeMerge> merges);

  // Merges `symbols` in place until no rule applies.
  void Merge(TokenSeq* symbols) const;

 private:
  struct Rule {
    uint32_t rank = 0;
    TokenId merged = 0;
  };
  const Rule* Find(TokenId left, TokenId right) const;

  absl::flat_hash_map<uint64_t, Rule> rules_;  // by (left << 32 | right)
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_BPE_MERGER_H_
