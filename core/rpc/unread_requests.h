// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_UNREAD_REQUESTS_H_
#define OUTRIDER_CORE_RPC_UNREAD_REQUESTS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/log_limiter.h"

namespace outrider {

// Why a call was refused before its method's handler had a request.
enum class UnreadReason {
  kMethod,     // there is no such method
  kMetadata,   // more than is taken
  kTurn,       // too many wait to be read, or it came too slowly
  kMalformed,  // no message of the method's, or one that is too large
};
inline constexpr UnreadReason kUnreadReasons[] = {
    UnreadReason::kMethod, UnreadReason::kMetadata, UnreadReason::kTurn,
    UnreadReason::kMalformed};
const char* NameOf(UnreadReason reason);

// Calls of a server that nothing behind it counts or logs. Thread-safe.
class UnreadRequests {
 public:
  void Count(UnreadReason reason) { ++counts_[static_cast<size_t>(reason)]; }
  // Each that is counted. Strangers can cause any number of them: one line a
  // second for each reason. `method` is what was called, there or not.
  void Log(UnreadReason reason, absl::string_view method,
           const absl::Status& status);
  int64_t NumOf(UnreadReason reason) const {
    return counts_[static_cast<size_t>(reason)];
  }

 private:
  struct Limiter : LogLimiter {
    Limiter() : LogLimiter(std::chrono::seconds(1)) {}
  };

  std::array<std::atomic<int64_t>, 4> counts_ = {};
  std::array<Limiter, 4> limiters_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_UNREAD_REQUESTS_H_
