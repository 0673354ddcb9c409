// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_DEADLINE_H_
#define OUTRIDER_CORE_RPC_DEADLINE_H_

#include <grpc/support/time.h>

#include <chrono>

namespace outrider {

// So long from now, as gRPC's calls, alarms and servers take it. It is by the
// steady clock: one of theirs by the system's clock would be off by what that
// is set forward or back between our reading it and theirs.
inline gpr_timespec DeadlineAfter(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_DEADLINE_H_
