// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_OPEN_STREAMS_H_
#define OUTRIDER_COORDINATOR_SERVICE_OPEN_STREAMS_H_

#include <chrono>

#include "core/base/mutex.h"

namespace outrider {

// How many streams there are whose clients have not had all of them, whether
// their generations are over or not. Thread-safe.
class OpenStreams {
 public:
  using Clock = std::chrono::steady_clock;

  // One of them, for as long as it lives.
  class Place {
   public:
    explicit Place(OpenStreams& streams) : streams_(streams) {
      MutexLock lock(streams_.mu_);
      ++streams_.num_open_;
    }
    Place(const Place&) = delete;
    ~Place() {
      MutexLock lock(streams_.mu_);
      if (--streams_.num_open_ == 0) streams_.changed_.NotifyAll();
    }

   private:
    OpenStreams& streams_;
  };

  // Waits until there is none, or until `end`.
  void AwaitNone(Clock::time_point end) {
    MutexLock lock(mu_);
    while (num_open_ > 0 && changed_.WaitUntil(mu_, end)) {
    }
  }

 private:
  Mutex mu_;
  CondVar changed_;
  int num_open_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_OPEN_STREAMS_H_
