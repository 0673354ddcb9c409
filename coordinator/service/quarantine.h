// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_
#define OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/types/span.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/session_id.h"
#include "core/base/token.h"

namespace outrider {

// The prompts of the requests that were ended of late because their verifiers
// died: one that comes again would take down others. Of each only a hash is
// kept, under a key of this object: nobody can make another prompt's equal, and
// no text is held. The oldest is forgotten for a newer one. A request's name is
// no sign of it: callers name many alike. Thread-safe.
class Quarantine {
 public:
  using Clock = MonotonicClock;
  static constexpr size_t kMost = 1024;
  static constexpr std::chrono::minutes kPeriod{10};

  void Add(absl::Span<const TokenId> prompt, Clock::time_point now);
  bool Has(absl::Span<const TokenId> prompt, Clock::time_point now) const;

 private:
  struct Entry {
    uint64_t prompt;
    Clock::time_point until;
  };

  uint64_t HashOf(absl::Span<const TokenId> prompt) const;

  const Id128 key_ = Id128::Random();
  mutable Mutex mu_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);  // the oldest first
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_
