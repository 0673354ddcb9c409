// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_POLLING_TURN_H_
#define OUTRIDER_CORE_RPC_POLLING_TURN_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/base/mutex.h"

namespace outrider {

// Which of two threads polls. It does what comes by itself, and while that is
// quick the other one sleeps: nobody is woken. Where something keeps it for
// longer than a moment, the other takes its turn, and it stands by from then
// on. So one thread at a time waits for what comes, and none waits for work
// that takes long. Thread-safe.
class PollingTurn {
 public:
  // Where nothing has come for so many moments, only what comes next wakes the
  // one that stands by.
  explicit PollingTurn(int idle_moments = 100) : idle_moments_(idle_moments) {}

  // The one whose turn it is says when it does what has come. False: it is the
  // other's turn now.
  uint64_t Begin() {
    const uint64_t begun = ++state_;
    if (is_asleep_) Wake();
    return begun;
  }
  bool End(uint64_t begun) {
    return state_.compare_exchange_strong(begun, begun + 1);
  }

  // The other one is kept here until it is its turn. False: the turns have
  // ended.
  bool StandBy();
  // Nothing comes any more.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  // What is begun in one and not done by the end of the next takes long.
  static constexpr std::chrono::milliseconds kMoment{1};

  void Wake();

  const int idle_moments_;
  // Even: one polls. Odd: it does what has come. Each change adds one, so that
  // who finds another number than it left knows that its turn is over.
  std::atomic<uint64_t> state_ = 0;
  std::atomic<bool> is_asleep_ = false;
  Mutex mu_;
  CondVar changed_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_POLLING_TURN_H_
