// SPDX-License-Identifier: Apache-2.0
#include "bench/load/prediction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/load/formula.h"

namespace outrider::bench {
namespace {

double RoundTripsMs(const Measurement& m) {
  const double drafter_ms =
      m.point.cell.k > 0 ? m.drafter_rtt_ms.value_or(0) : 0;
  return m.verifier_rtt_ms.value_or(0) + m.in_turn() * drafter_ms;
}

double NetworkMs(const Measurement& m) {
  return m.split.drafter_network_ms + m.split.verifier_network_ms;
}

double Hits(const Measurement& m) {
  return m.asked_ahead() * m.counts.ahead.hit_share();
}

// How long a round that hit waited for its drafts.
double WaitOfAHitMs(const Measurement& m) {
  return Hits(m) > 0 ? m.split.wait_ms / Hits(m) : 0;
}

// What calls take beside computing and round trips. A round whose drafts were
// made ahead for other outcomes has waited for them like one that hit.
double CallOverheadMs(const Measurement& m) {
  const double misses = m.asked_ahead() - Hits(m);
  return std::max(0.0,
                  NetworkMs(m) - RoundTripsMs(m) - misses * WaitOfAHitMs(m));
}

// What a drafter computes while it is verified: with a timing model it takes in
// the drafts in flight, and then drafts. Real nodes have shown how much longer
// than a verification that takes, with many rows in each pass and perhaps on
// the verifier's own processors; where they came in time, it is no longer.
double AheadMs(const Measurement& lowest, double draft_step_ms) {
  const double by_steps = (lowest.point.cell.k + 1) * draft_step_ms;
  const double wait_ms = WaitOfAHitMs(lowest);
  if (wait_ms == 0) return by_steps;
  return std::max(0.0, wait_ms + lowest.split.verify_ms +
                           lowest.verifier_rtt_ms.value_or(0) -
                           lowest.drafter_rtt_ms.value_or(0));
}

// The round of a cell as the formula has it. A timing model's times are known;
// real nodes say what they took in the cells of the lowest round trip, as a
// model alone has the processor's caches to itself.
RoundCosts Costs(const Measurement& m, const Measurement& lowest,
                 bool is_simulated) {
  const int k = m.point.cell.k;
  const bool is_known = is_simulated && m.model_verify_ms > 0;
  const double draft_step_ms =
      is_known ? m.model_draft_step_ms
      : k > 0 && lowest.in_turn() > 0
          ? lowest.split.draft_ms / (k * lowest.in_turn())
          : 0;
  return {.k = k,
          .draft_step_ms = draft_step_ms,
          .verify_ms =
              m.passes_per_round() *
              (is_known ? m.model_verify_ms
                        : lowest.split.verify_ms / lowest.passes_per_round()),
          .drafter_rtt_ms = m.drafter_rtt_ms.value_or(0),
          .verifier_rtt_ms = m.verifier_rtt_ms.value_or(0),
          .overhead_ms = CallOverheadMs(lowest) + lowest.split.rest_ms,
          .asked_ahead = m.asked_ahead(),
          .hits = m.counts.ahead.hit_share(),
          .ahead_ms = is_known ? (k + 1) * draft_step_ms
                               : AheadMs(lowest, draft_step_ms)};
}

struct Part {
  const char* name;
  double measured_ms;
  double predicted_ms;
  double difference_ms() const { return measured_ms - predicted_ms; }
};

}  // namespace

Prediction Predict(const Measurement& cell, double speedup,
                   const Measurement& lowest, bool is_simulated) {
  const RoundCosts costs = Costs(cell, lowest, is_simulated);
  Prediction prediction = {.round_ms = PredictRoundMs(costs)};
  const double round_tokens_ms = cell.plain_token_ms * cell.tokens_per_round;
  prediction.speedup = round_tokens_ms / prediction.round_ms;
  if (speedup <= 0) return prediction;
  prediction.measured_ms = round_tokens_ms / speedup;
  const std::vector<Part> parts = {
      {"drafting in turn", cell.split.draft_ms,
       cell.in_turn() * costs.k * costs.draft_step_ms},
      {"waiting for drafts made ahead", cell.split.wait_ms,
       Hits(cell) * LateMs(costs)},
      {"verifying", cell.split.verify_ms, costs.verify_ms},
      {"calls beside the nodes' computing (round trips, gRPC)", NetworkMs(cell),
       RoundTripsMs(cell) + CallOverheadMs(lowest)},
      {"the coordinator and the rest", cell.split.rest_ms,
       lowest.split.rest_ms}};
  const Part& largest =
      *std::max_element(parts.begin(), parts.end(), [](Part a, Part b) {
        return std::abs(a.difference_ms()) < std::abs(b.difference_ms());
      });
  // What no part has: time between requests and on the way to the client.
  const double outside_ms = prediction.measured_ms - cell.split.round_ms();
  prediction.largest_difference =
      std::abs(outside_ms) > std::abs(largest.difference_ms())
          ? absl::StrFormat(
                "the parts of a round add up to %.2f ms, so that %.2f lie "
                "outside of rounds",
                cell.split.round_ms(), outside_ms)
          : absl::StrFormat("%s took %.2f ms in place of %.2f", largest.name,
                            largest.measured_ms, largest.predicted_ms);
  return prediction;
}

}  // namespace outrider::bench
