// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_JITTERED_RETRY_DELAY_H_
#define OUTRIDER_COORDINATOR_NODES_JITTERED_RETRY_DELAY_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/retry_delay.h"
#include "core/base/session_id.h"
#include "core/session/siphash.h"

namespace outrider {

inline constexpr std::chrono::milliseconds kShortestDelay(10);
inline constexpr std::chrono::milliseconds kLongestDelay(5000);

// How long a session waits before it asks a node again that has refused it: as
// long as the node says, within the bounds above, and up to half as long again,
// so that those who were refused together do not return together.
inline std::chrono::milliseconds JitteredRetryDelay(const absl::Status& refusal,
                                                    const SessionId& session,
                                                    uint64_t attempt) {
  const auto told = RetryDelayOf(refusal).value_or(kShortestDelay);
  const auto delay = std::clamp(told, kShortestDelay, kLongestDelay);
  const uint64_t hash = SipHash24(session.bytes, absl::StrCat(attempt));
  return delay + delay * (hash % 256) / 512;
}

// What this coordinator itself refuses: up to half as long after `delay`, for
// the same reason.
inline absl::Status WithJitteredRetryDelay(absl::Status refusal,
                                           std::chrono::milliseconds delay) {
  const absl::Status plain = WithRetryDelay(std::move(refusal), delay);
  return WithRetryDelay(plain,
                        JitteredRetryDelay(plain, SessionId::Random(), 0));
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_JITTERED_RETRY_DELAY_H_
