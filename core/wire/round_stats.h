// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_ROUND_STATS_H_
#define OUTRIDER_CORE_WIRE_ROUND_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "core/session/cache_delta.h"

namespace outrider {

// Why a round that was to draft went on without.
enum class PlainReason {
  kNone,          // it drafted, or was not to
  kDraftFailed,   // the drafter failed, or has failed of late
  kDrafterFills,  // the drafter is still taking in the text
  kDrafterSlow,   // asking the drafter has cost more than it saved
  kNoDrafter,     // there is none, or the text is beyond its context
};

// What became of drafts for a round that were asked for before it, while the
// verifier worked on the last one.
struct AheadStats {
  enum class Outcome { kNotAsked, kHit, kMiss };  // kHit: they are the round's

  Outcome outcome = Outcome::kNotAsked;
  // Where asked: what the verdict took of its drafts, and whether all.
  int num_accepted = 0;
  bool all_stood = false;
  int num_drafted = 0;      // tokens for all verdicts; 0 where it was given up
  int num_outcomes = 0;     // verdicts with a draft of one token or more
  int longest = 0;          // of those drafts
  double wait_seconds = 0;  // that the round waited for them
  double call_seconds = 0;
  double compute_seconds = 0;  // the drafter's own share
};

// What one round did and where its time went.
struct RoundStats {
  int num_drafted = 0;
  int num_accepted = 0;
  int num_more = 0;       // tokens that the verifier went on with by itself
  int next_run = 1;       // tokens that a round without drafts would ask for
  int num_looked_up = 0;  // of the drafted: from the text, not the drafter
  std::vector<float> confidences = {};  // of the drafts; see Draft
  PlainReason plain_reason = PlainReason::kNone;
  bool lost_residual = false;  // see Verdict
  AheadStats ahead = {};
  double round_seconds = 0;

  struct Link {
    double call_seconds = 0;     // network included
    double compute_seconds = 0;  // the node's own share
    double own_seconds = 0;      // of those, for its rows; 0: is not known
    double queue_seconds = 0;    // of the node; 0: or is not known
    int64_t wire_bytes = 0;      // protobuf, both directions
    int64_t sent_bytes = 0;      // of them, to the node
    int num_messages = 0;        // requests and replies, of misses too
    std::array<int, std::size(kMissReasons)> misses = {};  // by their reasons
    int num_failures = 0;    // of a verifier: refusals, retries and moves
    int64_t num_reused = 0;  // tokens that the node had from other sessions

    int num_misses() const {
      return std::accumulate(misses.begin(), misses.end(), 0);
    }
    void Add(const Link& other) {
      call_seconds += other.call_seconds;
      compute_seconds += other.compute_seconds;
      own_seconds += other.own_seconds;
      queue_seconds += other.queue_seconds;
      wire_bytes += other.wire_bytes;
      sent_bytes += other.sent_bytes;
      num_messages += other.num_messages;
      for (size_t i = 0; i < misses.size(); ++i) misses[i] += other.misses[i];
      num_failures += other.num_failures;
      num_reused += other.num_reused;
    }
  };
  Link drafter = {};
  Link verifier = {};

  int num_by_drafter() const { return num_drafted - num_looked_up; }
  // The verifier's passes, where it takes in no text.
  int num_passes() const { return 1 + num_more; }
  int num_committed() const { return num_accepted + 1 + num_more; }
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_ROUND_STATS_H_
