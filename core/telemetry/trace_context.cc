// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/trace_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/session_id.h"

namespace outrider {
namespace {

// Lower case only, as the standard has it.
bool IsHex(absl::string_view text, size_t length) {
  return text.size() == length &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

std::string RandomHex16() {
  return absl::StrCat(absl::Hex(RandomSeed(), absl::kZeroPad16));
}

}  // namespace

std::optional<TraceContext> TraceContext::Parse(absl::string_view traceparent) {
  // VERSION-TRACE-SPAN-FLAGS; later versions may append fields.
  constexpr size_t kLength = 2 + 1 + 32 + 1 + 16 + 1 + 2;
  if (traceparent.size() < kLength) return std::nullopt;
  const absl::string_view version = traceparent.substr(0, 2);
  const absl::string_view trace = traceparent.substr(3, 32);
  const absl::string_view span = traceparent.substr(36, 16);
  const absl::string_view flags = traceparent.substr(53, 2);
  const bool is_shaped = IsHex(version, 2) && version != "ff" &&
                         IsHex(trace, 32) && IsHex(span, 16) &&
                         IsHex(flags, 2) && traceparent[2] == '-' &&
                         traceparent[35] == '-' && traceparent[52] == '-' &&
                         (traceparent.size() == kLength ||
                          (version != "00" && traceparent[kLength] == '-'));
  if (!is_shaped || IsZero(trace) || IsZero(span)) return std::nullopt;
  return TraceContext{.trace_id = std::string(trace),
                      .span_id = std::string(span),
                      .flags = std::string(flags)};
}

TraceContext TraceContext::Child() const {
  TraceContext child = *this;
  child.span_id = RandomHex16();
  return child;
}

std::string TraceContext::ToHeader() const {
  return absl::StrCat("00-", trace_id, "-", span_id, "-", flags);
}

bool IsRequestId(absl::string_view text) {
  constexpr size_t kMaxLength = 64;
  return !text.empty() && text.size() <= kMaxLength &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

std::string RequestIdFrom(absl::string_view proposed) {
  return IsRequestId(proposed) ? std::string(proposed) : RandomHex16();
}

}  // namespace outrider
