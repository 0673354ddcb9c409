// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_VERIFIER_LOSSES_H_
#define OUTRIDER_COORDINATOR_NODES_VERIFIER_LOSSES_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/monotonic_clock.h"
#include "core/base/mutex.h"

namespace outrider {

// Which verifiers were lost of late under the steps of a coordinator's
// sessions. Where some are lost that a session had no step at, verifiers are
// lost by other causes than that session. Thread-safe.
class VerifierLosses {
 public:
  using Clock = MonotonicClock;
  using Id = int64_t;
  // How long a loss tells of those that come after it.
  static constexpr std::chrono::seconds kMemory{30};
  // All who had steps at a verifier that is lost meet its loss within so long.
  static constexpr std::chrono::seconds kSpread{2};

  // A session meets the loss of the verifier at `address`: yields the same id
  // to all who meet the same one.
  Id Met(const std::string& address, Clock::time_point now);
  // Whether there was one of late that is not among `own`.
  bool HasOther(const std::vector<Id>& own, Clock::time_point now) const;
  // A session was found to have caused these: they tell of no other cause.
  void Forget(const std::vector<Id>& own);

 private:
  struct Loss {
    Id id;
    std::string address;
    Clock::time_point met_at;  // by the last one
  };

  mutable Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Loss> losses_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_VERIFIER_LOSSES_H_
