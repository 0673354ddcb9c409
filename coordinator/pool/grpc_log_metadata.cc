// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/grpc_log_metadata.h"

#include <string>

#include "core/telemetry/trace_context.h"

namespace outrider {

void AddLogMetadata(const LogIds& ids, grpc::ClientContext& context) {
  if (!ids.traceparent.empty()) {
    context.AddMetadata(kTraceparentKey, std::string(ids.traceparent));
  }
  if (!ids.request_id.empty()) {
    context.AddMetadata(kRequestIdKey, std::string(ids.request_id));
  }
}

}  // namespace outrider
