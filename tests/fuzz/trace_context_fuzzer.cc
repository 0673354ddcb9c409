// SPDX-License-Identifier: Apache-2.0
// Metadata of anybody's call: a `traceparent` that is a span or nothing, and a
// request id that goes into the log.
#include "core/telemetry/trace_context.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

void AsTraceparent(absl::string_view text) {
  const auto trace = TraceContext::Parse(text);
  if (!trace.has_value()) return;
  const std::string header = trace->ToHeader();
  // What stands after these is of later versions.
  OUTRIDER_CHECK(header.substr(2) == text.substr(2, header.size() - 2));
  OUTRIDER_CHECK(IsRequestId(trace->trace_id) && IsRequestId(trace->span_id));
  const TraceContext child = trace->Child();
  OUTRIDER_CHECK(child.trace_id == trace->trace_id);
  OUTRIDER_CHECK(TraceContext::Parse(child.ToHeader()).has_value());
}

void AsRequestId(absl::string_view text) {
  const std::string id = RequestIdFrom(text);
  OUTRIDER_CHECK(IsRequestId(id) && id.size() <= 64);
  OUTRIDER_CHECK((id == text) == IsRequestId(text));
  OUTRIDER_CHECK(id.find_first_of(" \n\r\t\"=\\") == std::string::npos);
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  AsTraceparent(AsText(data, size));
  AsRequestId(AsText(data, size));
  return 0;
}
