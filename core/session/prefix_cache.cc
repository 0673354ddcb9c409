// SPDX-License-Identifier: Apache-2.0
#include "core/session/prefix_cache.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/mutant.h"

namespace outrider {

std::optional<std::string> SharedSalt(PrefixSharing sharing,
                                      const std::string& salt) {
  if (sharing == PrefixSharing::kOff) return std::nullopt;
  if (sharing == PrefixSharing::kSalted && salt.empty()) return std::nullopt;
  return OUTRIDER_MUTANT(E6, salt, std::string());
}

std::vector<KvBlockId> PrefixCache::Find(
    const std::string& salt, absl::Span<const TokenId> tokens) const {
  std::vector<KvBlockId> table;
  std::optional<KvBlockId> before;
  for (; tokens.size() >= kKvBlockLength;
       tokens.remove_prefix(kKvBlockLength)) {
    const auto it = blocks_.find(KeyOf(salt, before, tokens));
    if (it == blocks_.end()) break;
    before = it->second;
    table.push_back(it->second);
  }
  return table;
}

void PrefixCache::Enter(const std::string& salt,
                        absl::Span<const TokenId> tokens,
                        std::vector<KvBlockId>& table) {
  std::optional<KvBlockId> before;
  for (size_t i = 0; tokens.size() >= kKvBlockLength;
       ++i, tokens.remove_prefix(kKvBlockLength)) {
    if (!pool_.IsKept(table[i])) {
      if (distrusted_.contains(table[i])) return;
      Key key = KeyOf(salt, before, tokens);
      const auto [it, is_new] = blocks_.try_emplace(key, table[i]);
      if (is_new) {
        entries_[table[i]] = {.key = std::move(key), .number = ++last_number_};
        pool_.Keep(table[i]);
      } else {
        pool_.Share({&it->second, 1});
        pool_.GiveBack({&table[i], 1});
        table[i] = it->second;
      }
    }
    before = table[i];
  }
}

void PrefixCache::Forget(absl::Span<const KvBlockId> blocks) {
  for (const KvBlockId block : blocks) {
    const auto it = entries_.find(block);
    if (it == entries_.end()) continue;
    blocks_.erase(it->second.key);
    entries_.erase(it);
    pool_.Forget(block);
  }
}

void PrefixCache::Distrust(absl::Span<const KvBlockId> blocks) {
  Forget(blocks);
  distrusted_.insert(blocks.begin(), blocks.end());
}

bool PrefixCache::Take(int count, std::vector<KvBlockId>& table) {
  const size_t num_before = table.size();
  if (!pool_.Take(count, table)) return false;
  const auto taken = absl::MakeConstSpan(table).subspan(num_before);
  Forget(taken);
  for (const KvBlockId block : taken) distrusted_.erase(block);
  return true;
}

bool PrefixCache::MayHold(KvBlockId block,
                          absl::Span<const TokenId> tokens) const {
  const auto it = entries_.find(block);
  if (it == entries_.end()) return !pool_.IsKept(block);
  const BlockTokens& known = it->second.key.tokens;
  return pool_.IsKept(block) && tokens == absl::MakeConstSpan(known);
}

PrefixCache::Key PrefixCache::KeyOf(const std::string& salt,
                                    std::optional<KvBlockId> before,
                                    absl::Span<const TokenId> tokens) const {
  Key key;
  if (before.has_value()) {
    key.before = entries_.at(*before).number;
  } else {
    key.salt = salt;
  }
  std::copy_n(tokens.begin(), kKvBlockLength, key.tokens.begin());
  return key;
}

}  // namespace outrider
