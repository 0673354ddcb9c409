// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_COUNTS_H_
#define OUTRIDER_BENCH_LOAD_COUNTS_H_

#include <cstdint>

#include "core/wire/round_stats.h"

namespace outrider::bench {

// What became of drafts that were asked for before their round.
struct AheadCounts {
  int num_hits = 0;    // rounds that had their drafts so
  int num_misses = 0;  // rounds that were to have them so
  // Those of both that came after a round which refused a draft, and the hits
  // among them.
  int num_after_refusal = 0;
  int num_hits_after_refusal = 0;
  int num_wasted = 0;  // draft tokens that came to nothing, in turn or ahead

  int num_asked() const { return num_hits + num_misses; }
  // 0 where nothing was asked for.
  double hit_share() const {
    return num_asked() > 0 ? static_cast<double>(num_hits) / num_asked() : 0;
  }
  // The same after a refusal: what --simulate-outcome-hit stands for.
  double hit_share_after_refusal() const {
    return num_after_refusal > 0
               ? static_cast<double>(num_hits_after_refusal) / num_after_refusal
               : 0;
  }

  void Add(const AheadCounts& other) {
    num_hits += other.num_hits;
    num_misses += other.num_misses;
    num_after_refusal += other.num_after_refusal;
    num_hits_after_refusal += other.num_hits_after_refusal;
    num_wasted += other.num_wasted;
  }
  // A round and the one before it.
  void Add(const RoundStats& round, const RoundStats& before) {
    const bool is_hit = round.ahead.outcome == AheadStats::Outcome::kHit;
    const bool is_miss = round.ahead.outcome == AheadStats::Outcome::kMiss;
    num_hits += is_hit ? 1 : 0;
    num_misses += is_miss ? 1 : 0;
    if (before.num_accepted < before.num_drafted) {
      num_after_refusal += is_hit || is_miss ? 1 : 0;
      num_hits_after_refusal += is_hit ? 1 : 0;
    }
    num_wasted += round.num_drafted - round.num_accepted +
                  round.ahead.num_drafted - (is_hit ? round.num_drafted : 0);
  }
  friend bool operator==(const AheadCounts&, const AheadCounts&) = default;
};

// Calls to one node.
struct LinkCounts {
  int64_t num_bytes = 0;  // of protobuf, both directions
  int num_messages = 0;   // requests and replies

  void Add(const LinkCounts& other) {
    num_bytes += other.num_bytes;
    num_messages += other.num_messages;
  }
  friend bool operator==(const LinkCounts&, const LinkCounts&) = default;
};

// What the coordinator's counters grow by in all rounds that were streamed,
// first ones included.
struct Counts {
  int num_rounds = 0;
  int num_drafted = 0;
  int num_accepted = 0;
  AheadCounts ahead = {};
  LinkCounts drafter = {};
  LinkCounts verifier = {};

  void Add(const Counts& other) {
    num_rounds += other.num_rounds;
    num_drafted += other.num_drafted;
    num_accepted += other.num_accepted;
    ahead.Add(other.ahead);
    drafter.Add(other.drafter);
    verifier.Add(other.verifier);
  }
  friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_COUNTS_H_
