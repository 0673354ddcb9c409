// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_
#define OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace outrider::bench {

// Numbers of processor cores, as `taskset` has them.
using Cores = std::vector<int>;

// Which cores run what. A thread that wakes elsewhere finds nothing in that
// core's caches, and whoever ran there finds nothing of its own afterwards: a
// kubelet with the static CPU manager places pods in the same way.
struct CorePlacement {
  Cores verifier = {};
  Cores drafter = {};
  Cores others = {};  // coordinators, the load, relays of a network
};

// The last `num_threads` of `cores` are the verifier's, as many before them the
// drafter's, and all others' is what is left. Where nothing would be left,
// others and the drafter share what the verifier does not have.
// INVALID_ARGUMENT: that is nothing.
absl::StatusOr<CorePlacement> PlaceOnCores(const Cores& cores, int num_threads);

// "verifier 3, drafter 2, all else 0 1".
std::string ToString(const CorePlacement& placement);

// Those that the calling thread may run on.
Cores CoresOfThisThread();
// The calling thread, and what it starts from now on, run on these alone.
// INTERNAL: the system does not allow it.
absl::Status KeepThisThreadOn(const Cores& cores);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_
