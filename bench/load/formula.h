// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_FORMULA_H_
#define OUTRIDER_BENCH_LOAD_FORMULA_H_

namespace outrider::bench {

// What a round is made of, one after the other (docs/algorithm.md): K draft
// steps, a pass over K + 1 rows, a round trip to each node that is asked, and
// what the software takes. Where drafts are asked for ahead, the drafter works
// beside the verification: a hit waits for what is left of that, and a miss
// drafts in turn after it. Where K is 0 the verifier makes as many passes as
// the round has tokens.
struct RoundCosts {
  int k = 0;
  double draft_step_ms = 0;
  double verify_ms = 0;  // of K + 1 rows, or of all passes
  double drafter_rtt_ms = 0;
  double verifier_rtt_ms = 0;
  double overhead_ms = 0;
  double asked_ahead = 0;  // share of the rounds
  double hits = 0;         // of these
  double ahead_ms = 0;     // that the drafter computes meanwhile
};
double PredictRoundMs(const RoundCosts& costs);
// How long after the verdict comes what is made ahead.
double LateMs(const RoundCosts& costs);

// E(K) = (1 - a^(K+1)) / (1 - a) for an acceptance probability a in [0, 1]
// (equation 1, Leviathan et al. 2023).
double ExpectedTokensPerRound(double acceptance, int k);

// The acceptance in [0, 1] with that E(K): fitted, by bisection. `tokens`
// outside of [1, K + 1] gives the nearest end.
double FitAcceptance(double tokens_per_round, int k);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_FORMULA_H_
