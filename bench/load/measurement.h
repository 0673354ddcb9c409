// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_MEASUREMENT_H_
#define OUTRIDER_BENCH_LOAD_MEASUREMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/load/counts.h"
#include "bench/load/load_generator.h"
#include "bench/load/plan.h"

namespace outrider::bench {

// Percentiles of a sample. All are 0 where it is empty.
struct Spread {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double mean = 0;
};
// Percentiles are values of the sample: the smallest one that this share of it
// does not exceed.
Spread Summarize(std::vector<double> sample);

// Where a round's time goes, in ms: means over the rounds after the first one
// of each generation, which fills the caches.
struct RoundSplit {
  double draft_ms = 0;            // computing
  double drafter_network_ms = 0;  // the call less the computing
  double verify_ms = 0;
  double verifier_network_ms = 0;
  double wait_ms = 0;  // for drafts that were made ahead, in rounds that hit
  double rest_ms = 0;  // neither drafting nor verifying
  double network_ms() const {  // as reports have it: with the waits
    return drafter_network_ms + verifier_network_ms + wait_ms;
  }
  double round_ms() const {
    return draft_ms + network_ms() + verify_ms + rest_ms;
  }
};

// Where and when a point was measured, whatever a resumed run adds to it.
struct Origin {
  bool is_simulated = false;  // timing models in place of weights
  std::string machine = {};
  double machine_load = 0;  // average of a minute, at the end of the point
  std::string date = {};    // UTC
  std::string commit = {};  // of this program
};

// What one point came to. Failed requests count as failures, nowhere else.
struct Measurement {
  Point point = {};
  Origin origin = {};
  int num_requests = 0;  // that succeeded
  int num_failures = 0;
  std::string first_failure = {};
  int num_tokens = 0;
  int num_rounds = 0;  // that RoundSplit is of
  Counts counts = {};
  double wall_seconds = 0;
  double mean_in_flight = 0;   // of these requests, at the same time
  Spread first_token_ms = {};  // from when the request was due
  // (end - first token) / tokens that came after those of the first message.
  Spread token_ms = {};
  Spread request_ms = {};
  double tokens_per_second = 0;  // in all
  double tokens_per_second_per_user = 0;
  std::vector<int> offered = {};   // [position]: drafts that got this far
  std::vector<int> accepted = {};  // [position]
  double tokens_per_round = 0;
  double drafter_bytes_per_token = 0;
  double verifier_bytes_per_token = 0;
  double drafter_messages_per_token = 0;
  double verifier_messages_per_token = 0;
  RoundSplit split = {};
  int num_draft_failures = 0;
  int num_misses = 0;
  bool ran_out_of_prompts = false;

  // What the emulated network and the processes did meanwhile.
  std::optional<double> verifier_rtt_ms = {};  // achieved; none: not emulated
  std::optional<double> drafter_rtt_ms = {};
  // What the nodes measure in their own processes; 0 where none was asked.
  double model_draft_step_ms = 0;
  double model_verify_ms = 0;  // a pass of K + 1 rows
  double plain_token_ms = 0;   // inside the verifier, no network
  // K = 0 through the same network with the same load; 0: none.
  double plain_network_token_ms = 0;
  double plain_network_tokens_per_second = 0;

  // Shares of the rounds that `split` is of: those whose drafts were asked for
  // ahead, and those that drafted in turn.
  double asked_ahead() const;
  double in_turn() const {
    return 1 - asked_ahead() * counts.ahead.hit_share();
  }
  // How many passes the verifier makes in a round: with K = 0 it goes on by
  // itself, a token each.
  double passes_per_round() const {
    return point.cell.k == 0 && tokens_per_round > 0 ? tokens_per_round : 1;
  }
  // How much faster than plain decoding inside the verifier, by one user: a
  // crowd's tokens a second, waits for first tokens included; else the time per
  // token, as arrivals set an open loop's tokens a second. 0: not known.
  double speedup() const;
  // The same over K = 0 through this network with this load.
  double network_speedup() const;
};
Measurement Measure(const Point& point, const LoadResult& result);

// The median; of an even number the mean of the two middle ones. Not empty.
double MedianOf(std::vector<double> values);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_MEASUREMENT_H_
