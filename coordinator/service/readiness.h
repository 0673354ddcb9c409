// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_READINESS_H_
#define OUTRIDER_COORDINATOR_SERVICE_READINESS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "coordinator/pool/node_pool.h"
#include "core/rpc/server.h"

namespace outrider {

// Keeps the server's health in step with the pool (SERVING while a verifier is
// ready) until a termination signal, and returns its number. With
// `require_drafter`, it begins to serve once each drafter's name has an
// address and each drafter was asked what it is, and returns
// FAILED_PRECONDITION where one of those that answer by then is found not to
// fit, or in the verifier's place; what it waits for is logged. Calls `tick`
// several times a second.
absl::StatusOr<int> ServeUntilTermination(
    const NodePool& pool, RpcServer& server, bool require_drafter,
    const std::function<void()>& tick = {});

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_READINESS_H_
