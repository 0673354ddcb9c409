// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/helper_cores.h"

#include <pthread.h>

namespace outrider::kernels {

HelperCores::HelperCores() {
  CPU_ZERO(&all_);
  // Where it fails, as on more than 1024 cores, helpers stay where they are.
  sched_getaffinity(0, sizeof(all_), &all_);
}

void HelperCores::LeaveOneToCaller(absl::Span<std::jthread> helpers) {
  const int core = sched_getcpu();
  if (core == callers_ || core < 0) return;
  callers_ = core;
  cpu_set_t others = all_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  for (std::jthread& helper : helpers) {
    // It fails where the process may no longer use any of these: then they may
    // run wherever it may.
    pthread_setaffinity_np(helper.native_handle(), sizeof(others), &others);
  }
}

}  // namespace outrider::kernels
