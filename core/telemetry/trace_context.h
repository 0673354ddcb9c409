// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TELEMETRY_TRACE_CONTEXT_H_
#define OUTRIDER_CORE_TELEMETRY_TRACE_CONTEXT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace outrider {

// gRPC metadata keys.
inline constexpr char kTraceparentKey[] = "traceparent";
inline constexpr char kRequestIdKey[] = "x-request-id";

// One span of a distributed trace (W3C Trace Context, level 1): its place in
// the trace, as `traceparent` carries it.
struct TraceContext {
  std::string trace_id = {};  // 32 hex digits
  std::string span_id = {};   // 16 hex digits
  std::string flags = {};     // 2 hex digits; 01 is "sampled"

  // Nothing where the header breaks the standard's rules, which say: start
  // anew, do not fail.
  static std::optional<TraceContext> Parse(absl::string_view traceparent);
  // A new span below this one.
  TraceContext Child() const;
  std::string ToHeader() const;
};

// Request ids are 1 to 64 of [A-Za-z0-9._-], so that they cannot forge log
// lines. RequestIdFrom: a caller's own id if it is one, else 16 random hex
// digits.
bool IsRequestId(absl::string_view text);
std::string RequestIdFrom(absl::string_view proposed);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TELEMETRY_TRACE_CONTEXT_H_
