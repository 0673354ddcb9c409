// SPDX-License-Identifier: Apache-2.0
#include "core/node/trace_log.h"

#include <optional>

#include "core/base/log.h"
#include "core/telemetry/trace_context.h"

namespace outrider {
namespace {

absl::string_view MetadataOf(const grpc::ServerContextBase& context,
                             const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace

void LogSessionOpened(const grpc::ServerContextBase& context,
                      const SessionId& session) {
  LogFields fields;
  const absl::string_view request_id = MetadataOf(context, kRequestIdKey);
  if (IsRequestId(request_id)) {
    fields.emplace_back("request_id", std::string(request_id));
  }
  const auto trace = TraceContext::Parse(MetadataOf(context, kTraceparentKey));
  if (trace.has_value()) {
    fields.emplace_back("trace_id", trace->trace_id);
    fields.emplace_back("parent_span_id", trace->span_id);
  }
  if (fields.empty()) return;
  fields.emplace_back("session", session.ShortHex());
  OUTRIDER_LOG(kInfo, fields) << "session opened";
}

}  // namespace outrider
