// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_
#define OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_

#include <sched.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace outrider::bench {

// Logical processors by number, as `taskset` has them; siblings of one core
// have a number each.
using Cores = std::vector<int>;

// Which cores run what. A thread that wakes elsewhere finds nothing in that
// core's caches, and whoever ran there finds nothing of its own afterwards.
struct CorePlacement {
  Cores verifier = {};
  Cores drafter = {};
  Cores others = {};  // coordinators, the load, relays of a network
};

// The last `num_threads` of `cores` are the verifier's, as many before them the
// drafter's, and all others' is what is left. Where nothing is left, they share
// the drafter's. INVALID_ARGUMENT: there are not enough for both nodes.
absl::StatusOr<CorePlacement> PlaceOnCores(const Cores& cores, int num_threads);

// "verifier 3, drafter 2, all else 0 1".
std::string ToString(const CorePlacement& placement);

// These cores, as system calls have them.
cpu_set_t SetOf(const Cores& cores);
// Those that the calling thread may run on. UNAVAILABLE: the system does not
// say.
absl::StatusOr<Cores> CoresOfThisThread();
// The calling thread, and what it starts from now on, run on these alone.
// UNAVAILABLE: the system does not let it, or takes some of them away.
absl::Status KeepThisThreadOn(const Cores& cores);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_CORE_PLACEMENT_H_
