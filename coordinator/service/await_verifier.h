// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_AWAIT_VERIFIER_H_
#define OUTRIDER_COORDINATOR_SERVICE_AWAIT_VERIFIER_H_

#include <chrono>
#include <functional>

#include "absl/status/statusor.h"
#include "coordinator/nodes/session_nodes.h"
#include "coordinator/nodes/session_pool.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"

namespace outrider {

// Waits a moment for a verifier to be ready again, such as one that was
// replaced and is asked what it is now.
Task<void> AwaitVerifier(SessionPool& pool, Cancellation& cancellation);

// A stream that is resumed holds where no verifier is ready, as one does that
// has begun: is assigned again and again, for as long as its `patience`, and
// only a moment longer where others than its model come first, as its own may
// be on the way.
using AssignNodes = std::function<absl::StatusOr<SessionNodes>()>;
Task<absl::StatusOr<SessionNodes>> HoldForVerifier(
    SessionPool& pool, const AssignNodes& assign,
    std::chrono::milliseconds patience, Cancellation& cancellation);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_AWAIT_VERIFIER_H_
