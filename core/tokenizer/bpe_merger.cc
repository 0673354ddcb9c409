// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_merger.h"

#include <cstddef>
#include <queue>
#include <tuple>
#include <utility>

namespace outrider {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr TokenId kRemoved = -1;

// A symbol in the list of those not merged away.
struct Symbol {
  TokenId id = 0;
  size_t previous = kNone;
  size_t next = kNone;
};

// A merge that was possible when it was queued, at the left symbol's place.
struct Candidate {
  uint32_t rank = 0;
  TokenId merged = 0;
  size_t place = 0;

  // The queue gives the largest first: the lowest rank, then the leftmost.
  bool operator<(const Candidate& other) const {
    return std::tie(other.rank, other.place) < std::tie(rank, place);
  }
};

uint64_t KeyOf(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

std::vector<Symbol> Linked(const TokenSeq& ids) {
  std::vector<Symbol> symbols(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    symbols[i] = {.id = ids[i],
                  .previous = i == 0 ? kNone : i - 1,
                  .next = i + 1 == ids.size() ? kNone : i + 1};
  }
  return symbols;
}

}  // namespace

BpeMerger::BpeMerger(absl::Span<const BpeMerge> merges) {
  rules_.reserve(merges.size());
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const BpeMerge& merge = merges[rank];
    rules_[KeyOf(merge.left, merge.right)] = {.rank = rank,
                                              .merged = merge.merged};
  }
}

const BpeMerger::Rule* BpeMerger::Find(TokenId left, TokenId right) const {
  const auto it = rules_.find(KeyOf(left, right));
  return it == rules_.end() ? nullptr : &it->second;
}

void BpeMerger::Merge(TokenSeq* ids) const {
  std::vector<Symbol> symbols = Linked(*ids);
  // What joining the symbol at `place` with its successor would be.
  const auto rule_at = [&](size_t place) {
    const size_t next = symbols[place].next;
    return next == kNone ? nullptr : Find(symbols[place].id, symbols[next].id);
  };
  std::vector<Candidate> initial;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (const Rule* rule = rule_at(i)) {
      initial.push_back({rule->rank, rule->merged, i});
    }
  }
  if (initial.empty()) return;

  std::priority_queue<Candidate> queue({}, std::move(initial));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.place];
    if (left.id == kRemoved) continue;
    // Merges nearby may have outdated the candidate. Like the reference, it
    // still counts if what stands here now becomes the same token.
    const Rule* rule = rule_at(top.place);
    if (rule == nullptr || rule->merged != top.merged) continue;

    Symbol& right = symbols[left.next];
    left.id = top.merged;
    left.next = right.next;
    right.id = kRemoved;
    if (left.next != kNone) symbols[left.next].previous = top.place;

    for (const size_t place : {left.previous, top.place}) {
      if (place == kNone) continue;
      if (const Rule* next_rule = rule_at(place)) {
        queue.push({next_rule->rank, next_rule->merged, place});
      }
    }
  }

  ids->clear();
  for (size_t i = 0; i != kNone; i = symbols[i].next) {
    ids->push_back(symbols[i].id);
  }
}

}  // namespace outrider
