// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_
#define OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"
#include "core/base/session_id.h"
#include "core/base/token.h"

namespace outrider {

// The prompts and the names of the requests that were ended of late because
// their verifiers died: one that comes again would take down others. Of each
// only hashes are kept, under a key of this object: nobody can make another
// prompt's equal, and no text is held. The oldest is forgotten for a newer one.
// Thread-safe.
class Quarantine {
 public:
  using Clock = MonotonicClock;
  static constexpr size_t kMost = 1024;
  static constexpr std::chrono::minutes kPeriod{10};

  void Add(absl::Span<const TokenId> prompt, absl::string_view request_id,
           Clock::time_point now);
  // Whether a request of this prompt, or of this name, is in it.
  bool Has(absl::Span<const TokenId> prompt, absl::string_view request_id,
           Clock::time_point now) const;

 private:
  struct Entry {
    uint64_t prompt;
    uint64_t request_id;
    Clock::time_point until;
  };

  // When it ends does not matter to what it hashes.
  Entry EntryOf(absl::Span<const TokenId> prompt, absl::string_view request_id,
                Clock::time_point now) const;

  const Id128 key_ = Id128::Random();
  mutable Mutex mu_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);  // the oldest first
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_QUARANTINE_H_
