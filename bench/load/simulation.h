// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_SIMULATION_H_
#define OUTRIDER_BENCH_LOAD_SIMULATION_H_

namespace outrider::bench {

// A timing model in place of weights, on both nodes.
struct Simulation {
  double draft_ms = 0;       // a drafter's pass
  double draft_row_ms = 0;   // and each token of it
  double verify_ms = 0;      // a pass
  double verify_row_ms = 0;  // and each token of it
  double acceptance = 0;
  double outcome_hit = 0;  // of refused drafts: the drafter guesses the next
  int vocab_size = 256;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_SIMULATION_H_
