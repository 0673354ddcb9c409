// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_RETRY_DELAY_H_
#define OUTRIDER_CORE_BASE_RETRY_DELAY_H_

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace outrider {

// How long whoever was refused should wait before trying again, as a payload of
// the status; on the wire it is a google.rpc.RetryInfo
// (core/rpc/status_convert).
inline constexpr char kRetryDelayUrl[] = "outrider/retry-delay-ms";

inline absl::Status WithRetryDelay(absl::Status status,
                                   std::chrono::milliseconds delay) {
  status.SetPayload(kRetryDelayUrl, absl::Cord(absl::StrCat(delay.count())));
  return status;
}

// Nothing where the status does not say.
inline std::optional<std::chrono::milliseconds> RetryDelayOf(
    const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayUrl);
  int64_t count = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &count)) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(count);
}

// Whether the call was refused, and only for now: before any work, or by a pass
// that had no memory. Without a delay RESOURCE_EXHAUSTED is for good: what can
// never fit.
inline bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && RetryDelayOf(status).has_value();
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_RETRY_DELAY_H_
