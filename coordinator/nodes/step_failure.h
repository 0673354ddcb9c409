// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_STEP_FAILURE_H_
#define OUTRIDER_COORDINATOR_NODES_STEP_FAILURE_H_

#include <optional>

#include "absl/status/status.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/nodes/session_moves.h"
#include "core/base/retry_delay.h"

namespace outrider {

// These tell what the status of a step that a verifier did not answer means.

// What is refused for as long as the node is what it is: a text above its
// memory, more drafts than it takes, or what is wrong everywhere.
inline bool IsForGood(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ||
         (absl::IsResourceExhausted(status) && !IsRefusal(status));
}

// What tells of the node, not of the session or the load. INTERNAL may be
// either; the breaker opens at several in a row, and a session has one of them.
inline bool IsOfNode(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsInternal(status);
}

// The node could not compute the step, and others may. It has lost the session.
inline bool IsFailure(const absl::Status& status) {
  return absl::IsInternal(status) && !IsPoison(status);
}

// The node is there, and cannot have the session as it is by now.
inline bool FitsNoMore(MoveReason reason) {
  return reason == MoveReason::kOutgrown || reason == MoveReason::kReplaced;
}

// What a verifier answers no session that has begun: what is there now is
// another service, or knows other certificates. It may be itself again later.
inline bool IsMisplaced(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status) || absl::IsUnknown(status);
}

// Why a session that has begun cannot stay, if so.
inline std::optional<MoveReason> ReasonOf(const absl::Status& status) {
  if (IsOutgrown(status)) return MoveReason::kOutgrown;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return MoveReason::kLost;
    case absl::StatusCode::kDeadlineExceeded:
      return MoveReason::kLate;
    case absl::StatusCode::kAborted:
      return MoveReason::kReplaced;
    default:
      return std::nullopt;
  }
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_STEP_FAILURE_H_
