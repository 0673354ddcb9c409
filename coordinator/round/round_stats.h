// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_ROUND_STATS_H_
#define OUTRIDER_COORDINATOR_ROUND_ROUND_STATS_H_

#include <chrono>
#include <cstdint>

namespace outrider {

// Why a round that was to draft went on without.
enum class PlainReason {
  kNone,          // it drafted, or was not to
  kDraftFailed,   // the drafter failed, or has failed of late
  kDrafterFills,  // the drafter is still taking in the text
  kDrafterSlow,   // asking the drafter has cost more than it saved
};

// What one round did and where its time went.
struct RoundStats {
  int num_drafted = 0;
  int num_accepted = 0;
  int num_looked_up = 0;  // of the drafted: from the text, not the drafter
  PlainReason plain_reason = PlainReason::kNone;
  double round_seconds = 0;

  struct Link {
    double call_seconds = 0;     // network included
    double compute_seconds = 0;  // the node's own share
    int64_t wire_bytes = 0;      // protobuf, both directions
    int64_t sent_bytes = 0;      // of them, to the node
    int num_messages = 0;        // requests and replies, of misses too
    int num_misses = 0;
    int num_failures = 0;
  };
  Link drafter = {};
  Link verifier = {};
};

// Adds the time from its construction to its destruction.
class ScopedTimer {
 public:
  explicit ScopedTimer(double& seconds) : seconds_(seconds) {}
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;
  ~ScopedTimer() {
    seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_ROUND_STATS_H_
