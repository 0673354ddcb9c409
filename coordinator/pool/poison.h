// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_POISON_H_
#define OUTRIDER_COORDINATOR_POOL_POISON_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace outrider {

inline constexpr char kPoisonUrl[] = "outrider/poison";

// Of a session that may be what its verifiers died of: no other is to have it,
// here or by way of another coordinator.
inline absl::Status PoisonError() {
  absl::Status status = absl::InternalError(
      "verifiers were lost one after the other while they had this step, and "
      "no other session of this kind was at the last: no other one is tried");
  status.SetPayload(kPoisonUrl, absl::Cord("1"));
  return status;
}
inline bool IsPoison(const absl::Status& status) {
  return status.GetPayload(kPoisonUrl).has_value();
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_POISON_H_
