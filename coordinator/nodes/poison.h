// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_POISON_H_
#define OUTRIDER_COORDINATOR_NODES_POISON_H_

#include "absl/status/status.h"
#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"

namespace outrider {

// The status of a session that may be what its verifiers died of: no other is
// to have it, here or by way of another coordinator.
inline absl::Status PoisonError() {
  return WithErrorReason(
      absl::InternalError(
          "verifiers were lost one after the other while they had this step, "
          "and no other session of this kind was at the last: no other one is "
          "tried"),
      kPoisonReason);
}
inline bool IsPoison(const absl::Status& status) {
  return ErrorReasonOf(status) == kPoisonReason;
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_POISON_H_
