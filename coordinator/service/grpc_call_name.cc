// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/grpc_call_name.h"

#include "absl/strings/string_view.h"

namespace outrider {

CallName CallName::Of(const grpc::ServerContextBase& context) {
  const auto header = [&](const char* key) -> absl::string_view {
    const auto found = context.client_metadata().find(key);
    if (found == context.client_metadata().end()) return "";
    return {found->second.data(), found->second.size()};
  };
  CallName name = {.request_id = RequestIdFrom(header(kRequestIdKey))};
  const auto parent = TraceContext::Parse(header(kTraceparentKey));
  if (parent.has_value()) name.trace = parent->Child();
  return name;
}

LogFields CallName::Fields() const {
  LogFields fields = {{"request_id", request_id}};
  if (trace.has_value()) {
    fields.emplace_back("trace_id", trace->trace_id);
    fields.emplace_back("span_id", trace->span_id);
  }
  return fields;
}

}  // namespace outrider
