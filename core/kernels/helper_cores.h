// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_HELPER_CORES_H_
#define OUTRIDER_CORE_KERNELS_HELPER_CORES_H_

#include <sched.h>

#include <thread>

#include "absl/types/span.h"

namespace outrider::kernels {

// Keeps threads that help another one off its core. Linux may wake a thread on
// the core of whoever wakes it, though another one is idle: the two take turns
// there until the next balancing, which is later than the end of a pass.
// Thread-compatible.
class HelperCores {
 public:
  // They may use those that the calling thread may.
  HelperCores();

  // Called before sleeping helpers are woken: from now on they run on any core
  // but the one that the calling thread is on. Costs system calls only where
  // that is another one than last time.
  void LeaveOneToCaller(absl::Span<std::jthread> helpers);

 private:
  cpu_set_t all_;
  int callers_ = -1;  // not known yet
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_HELPER_CORES_H_
