// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_ERRORS_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_ERRORS_H_

#include "absl/status/status.h"

namespace outrider {

// Errors that belong to a session and not to its node. Each has a reason of its
// own (refusal_reasons.h), by which it is told from others of its code.

// No verifier that is ready has room for the text; one that is not may have.
absl::Status OutgrownError(int length, int room);
bool IsOutgrown(const absl::Status& status);

// It may be what its verifiers died of: no other is to have it, here or by way
// of another coordinator.
absl::Status PoisonError();
bool IsPoison(const absl::Status& status);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_ERRORS_H_
