// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_CANCELLATION_H_
#define OUTRIDER_CORE_BASE_CANCELLATION_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"

namespace outrider {

// Carries "nobody waits for this any more" to calls in flight. Thread-safe.
class Cancellation {
 public:
  void Cancel() {
    MutexLock lock(mu_);
    cancelled_ = true;
    for (auto& [id, stop] : stops_) stop();
    stops_.clear();
  }

  bool cancelled() const {
    MutexLock lock(mu_);
    return cancelled_;
  }

  // `stop` runs on Cancel, or at once if that has been. It runs under the lock,
  // so that it never runs after Forget has returned: it must only pass the word
  // on, and not call back.
  uint64_t OnCancel(std::function<void()> stop) {
    MutexLock lock(mu_);
    ++last_id_;
    if (cancelled_) {
      stop();
    } else {
      stops_.emplace(last_id_, std::move(stop));
    }
    return last_id_;
  }
  void Forget(uint64_t id) {
    MutexLock lock(mu_);
    stops_.erase(id);
  }

 private:
  mutable Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> stops_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_CANCELLATION_H_
