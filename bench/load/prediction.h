// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_PREDICTION_H_
#define OUTRIDER_BENCH_LOAD_PREDICTION_H_

#include <string>

#include "bench/load/measurement.h"

namespace outrider::bench {

// A cell of one user at a time by the formula. Its tokens per round and round
// trips are the measured ones; its overhead, and real models' computing times,
// are those of the same K at the lowest round trip.
struct Prediction {
  double speedup = 0;      // over plain decoding inside the verifier
  double round_ms = 0;     // predicted
  double measured_ms = 0;  // what a round took, by the measured speed-up
  // The part of a round that makes most of the difference, as in "verifying
  // took 6.02 ms in place of 3.91". Empty where nothing was measured.
  std::string largest_difference = {};
};

// `lowest`: the same K and load at the lowest round trip. Both have rounds.
// `speedup`: the cell's, as measured; 0: none.
Prediction Predict(const Measurement& cell, double speedup,
                   const Measurement& lowest, bool is_simulated);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_PREDICTION_H_
