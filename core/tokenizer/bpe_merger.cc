// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_merger.h"

#include <algorithm>
#include <cstddef>
#include <optional>
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

  // The lowest rank goes first, then the leftmost.
  bool GoesBefore(const Candidate& other) const {
    return std::tie(rank, place) < std::tie(other.rank, other.place);
  }
};

bool GoesAfter(const Candidate& a, const Candidate& b) {
  return b.GoesBefore(a);
}

// Candidates in their order. Those of the start are sorted once, in long texts
// much faster than a heap of all of them; only what merges add is in a heap.
class CandidateQueue {
 public:
  explicit CandidateQueue(std::vector<Candidate> initial)
      : initial_(std::move(initial)) {
    std::sort(initial_.begin(), initial_.end(), GoesAfter);
  }
  void Push(const Candidate& candidate) { added_.push(candidate); }
  std::optional<Candidate> Pop() {
    if (!initial_.empty() &&
        (added_.empty() || initial_.back().GoesBefore(added_.top()))) {
      const Candidate first = initial_.back();
      initial_.pop_back();
      return first;
    }
    if (added_.empty()) return std::nullopt;
    const Candidate first = added_.top();
    added_.pop();
    return first;
  }

 private:
  std::vector<Candidate> initial_;  // the last goes first
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(&GoesAfter)>
      added_{&GoesAfter};
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

  CandidateQueue queue(std::move(initial));
  while (const std::optional<Candidate> top = queue.Pop()) {
    Symbol& left = symbols[top->place];
    if (left.id == kRemoved) continue;
    // Merges nearby may have outdated the candidate. Like the reference, it
    // still counts if what stands here now becomes the same token.
    const Rule* rule = rule_at(top->place);
    if (rule == nullptr || rule->merged != top->merged) continue;

    Symbol& right = symbols[left.next];
    left.id = top->merged;
    left.next = right.next;
    right.id = kRemoved;
    if (left.next != kNone) symbols[left.next].previous = top->place;

    for (const size_t place : {left.previous, top->place}) {
      if (place == kNone) continue;
      if (const Rule* next_rule = rule_at(place)) {
        queue.Push({next_rule->rank, next_rule->merged, place});
      }
    }
  }

  ids->clear();
  for (size_t i = 0; i != kNone; i = symbols[i].next) {
    ids->push_back(symbols[i].id);
  }
}

}  // namespace outrider
