// SPDX-License-Identifier: Apache-2.0
#include "core/node/trace_log.h"

#include <optional>

#include "core/base/log.h"
#include "core/telemetry/trace_context.h"

namespace outrider {

void LogTracedOpen(const grpc::CallbackServerContext& context,
                   const RequestHeader& header) {
  if (!header.incarnation.is_none()) return;
  const auto found = context.client_metadata().find(kTraceparentKey);
  if (found == context.client_metadata().end()) return;
  const std::optional<TraceContext> trace = TraceContext::Parse(
      absl::string_view(found->second.data(), found->second.size()));
  if (!trace.has_value()) return;
  OUTRIDER_LOG(kInfo, {{"session", header.session.ShortHex()},
                       {"trace_id", trace->trace_id},
                       {"parent_span_id", trace->span_id}})
      << "session opened";
}

}  // namespace outrider
