// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_BASELINES_H_
#define OUTRIDER_BENCH_LOAD_BASELINES_H_

#include <optional>
#include <string>

#include "bench/load/measurement.h"

namespace outrider::bench {

// What a point is compared with, of its own repeat and round trip. Null: not
// measured.
struct Baselines {
  const Measurement* plain = nullptr;  // K = 0 with the same load
  const Measurement* alone = nullptr;  // K = 0 of one user
};

// A speed-up, or none, which is 0 among measurements.
std::optional<double> OrNone(double speedup);
// "1.23"; "" where there is none.
std::string TimesText(double speedup);

// Notes what K = 0 gives through the same network with the same load. K = 0 is
// its own baseline; another K without one has none.
void NotePlainNetwork(const Baselines& baselines, Measurement& measured);

// Notes what plain decoding inside a running deployment's verifier takes, by
// what that verifier itself says of K = 0 of one user: users who are several
// share its passes. None where that was not measured.
void NotePlainVerifier(const Baselines& baselines, Measurement& measured);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_BASELINES_H_
