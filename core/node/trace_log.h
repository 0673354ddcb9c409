// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_TRACE_LOG_H_
#define OUTRIDER_CORE_NODE_TRACE_LOG_H_

#include <grpcpp/server_context.h>

#include "core/session/cache_delta.h"

namespace outrider {

// Logs a call that opens a session under a caller's trace (`traceparent` in the
// metadata), so that the trace can be followed to this node; other calls are
// not logged.
void LogTracedOpen(const grpc::CallbackServerContext& context,
                   const RequestHeader& header);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_TRACE_LOG_H_
