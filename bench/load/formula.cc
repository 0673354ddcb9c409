// SPDX-License-Identifier: Apache-2.0
#include "bench/load/formula.h"

#include <algorithm>

namespace outrider::bench {

double LateMs(const RoundCosts& costs) {
  return std::max(0.0, costs.drafter_rtt_ms + costs.ahead_ms -
                           costs.verifier_rtt_ms - costs.verify_ms);
}

double PredictRoundMs(const RoundCosts& costs) {
  const double in_turn_ms =
      costs.k > 0 ? costs.k * costs.draft_step_ms + costs.drafter_rtt_ms : 0;
  const double ahead_ms = LateMs(costs) + (1 - costs.hits) * in_turn_ms;
  const double draft_ms =
      in_turn_ms + costs.asked_ahead * (ahead_ms - in_turn_ms);
  return draft_ms + costs.verifier_rtt_ms + costs.verify_ms + costs.overhead_ms;
}

double ExpectedTokensPerRound(double acceptance, int k) {
  double sum = 1;
  double power = 1;
  for (int i = 0; i < k; ++i) sum += power *= acceptance;
  return sum;
}

double FitAcceptance(double tokens_per_round, int k) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const bool is_low = ExpectedTokensPerRound(middle, k) < tokens_per_round;
    (is_low ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace outrider::bench
