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
  return m.verifier_rtt_ms.value_or(0) + drafter_ms;
}

double NetworkMs(const Measurement& m) {
  return m.split.drafter_network_ms + m.split.verifier_network_ms;
}

// What calls take beside computing and round trips.
double CallOverheadMs(const Measurement& m) {
  return std::max(0.0, NetworkMs(m) - RoundTripsMs(m));
}

double AskedAhead(const Measurement& m) {
  const Counts& counts = m.counts;
  return counts.num_rounds > 0
             ? static_cast<double>(counts.ahead.num_asked()) / counts.num_rounds
             : 0;
}

// The round of a cell as the formula has it. A timing model's times are known;
// real nodes say what they took in the cells of the lowest round trip, as a
// model alone has the processor's caches to itself.
RoundCosts Costs(const Measurement& m, const Measurement& lowest,
                 bool is_simulated) {
  const int k = m.point.cell.k;
  const bool is_known = is_simulated && m.model_verify_ms > 0;
  // The rounds that drafted in turn have all of this time.
  const double in_turn =
      1 - AskedAhead(lowest) * lowest.counts.ahead.hit_share();
  return {.k = k,
          .draft_step_ms = is_known ? m.model_draft_step_ms
                           : k > 0 && in_turn > 0
                               ? lowest.split.draft_ms / (k * in_turn)
                               : 0,
          .verify_ms = is_known ? m.model_verify_ms : lowest.split.verify_ms,
          .drafter_rtt_ms = m.drafter_rtt_ms.value_or(0),
          .verifier_rtt_ms = m.verifier_rtt_ms.value_or(0),
          .overhead_ms = CallOverheadMs(lowest) + lowest.split.rest_ms,
          .asked_ahead = AskedAhead(m),
          .hits = m.counts.ahead.hit_share()};
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
      {"drafting", cell.split.draft_ms, costs.k * costs.draft_step_ms},
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
