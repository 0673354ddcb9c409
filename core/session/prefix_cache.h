// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_PREFIX_CACHE_H_
#define OUTRIDER_CORE_SESSION_PREFIX_CACHE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "core/base/kv_block.h"
#include "core/base/token.h"
#include "core/session/kv_block_pool.h"

namespace outrider {

// Which sessions share the blocks of what they begin with.
enum class PrefixSharing {
  kOff,
  kSalted,  // those of one salt, unless it is empty
  kAll,     // those without a salt, too
};

// Their names, on command lines and in Describe.
inline std::map<std::string, PrefixSharing> PrefixSharingNames() {
  return {{"off", PrefixSharing::kOff},
          {"salted", PrefixSharing::kSalted},
          {"all", PrefixSharing::kAll}};
}

// The salt among whose sessions one shares; nothing: it shares with nobody.
std::optional<std::string> SharedSalt(PrefixSharing sharing,
                                      const std::string& salt);

// Which full blocks hold which beginnings of texts: a chat sends its whole
// history every turn. One tree of texts for each salt; what stands in one is
// never found in another. A block that stands here is never written: it leaves
// when the pool has nothing else to give. Confined to the scheduler.
class PrefixCache {
 public:
  // The pool must outlive it.
  explicit PrefixCache(KvBlockPool& pool) : pool_(pool) {}
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // The blocks of the longest known beginning of `tokens`. The caller owns none
  // of them, and may share them until the next Take or Forget.
  std::vector<KvBlockId> Find(const std::string& salt,
                              absl::Span<const TokenId> tokens) const;
  // Enters the blocks of a table that `tokens` fill. Where a text is known
  // already, the block that it is known by takes the place of the table's own.
  void Enter(const std::string& salt, absl::Span<const TokenId> tokens,
             std::vector<KvBlockId>& table);
  // Strikes these out, those that are not here left aside.
  void Forget(absl::Span<const KvBlockId> blocks);
  // The same, and nobody enters them, or what comes after them in a text,
  // before they have been taken for something new: what they hold may be wrong.
  void Distrust(absl::Span<const KvBlockId> blocks);
  // Takes blocks for something new; as the pool's.
  [[nodiscard]] bool Take(int count, std::vector<KvBlockId>& table);

  // Whether the block holds these tokens, as far as is known here; for tests.
  bool MayHold(KvBlockId block, absl::Span<const TokenId> tokens) const;

 private:
  using BlockTokens = std::array<TokenId, kKvBlockLength>;
  // A block is known by its tokens and by the number of the block before it,
  // so equal keys are equal texts from the beginning on, whatever hashes do.
  struct Key {
    uint64_t before = 0;    // none
    std::string salt = {};  // where there is none before; empty elsewhere
    BlockTokens tokens = {};

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.before, key.salt, key.tokens);
    }
  };
  struct Entry {
    Key key = {};
    uint64_t number = 0;  // never used again
  };

  // The key of the block after `before`, which holds the first of `tokens`.
  Key KeyOf(const std::string& salt, std::optional<KvBlockId> before,
            absl::Span<const TokenId> tokens) const;

  KvBlockPool& pool_;
  absl::flat_hash_map<Key, KvBlockId> blocks_;
  absl::flat_hash_map<KvBlockId, Entry> entries_;
  absl::flat_hash_set<KvBlockId> distrusted_;  // none of them is kept
  uint64_t last_number_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_PREFIX_CACHE_H_
