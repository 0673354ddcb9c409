// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_MACHINE_H_
#define OUTRIDER_BENCH_LOAD_MACHINE_H_

#include "bench/load/measurement.h"

namespace outrider::bench {

// This machine, its load, the time and this program's commit, as far as they
// can be found.
Origin DescribeOrigin(bool is_simulated);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_MACHINE_H_
