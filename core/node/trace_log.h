// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_TRACE_LOG_H_
#define OUTRIDER_CORE_NODE_TRACE_LOG_H_

#include <grpcpp/server_context.h>

#include "core/base/session_id.h"

namespace outrider {

// Logs a call that has opened a session, by the names that its caller's logs
// have for it (`x-request-id` and `traceparent` in the metadata), so that a
// request can be followed to this node. A call without either is not logged.
void LogSessionOpened(const grpc::ServerContextBase& context,
                      const SessionId& session);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_TRACE_LOG_H_
