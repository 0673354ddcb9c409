// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SLEEP_H_
#define OUTRIDER_CORE_RPC_SLEEP_H_

#include <grpcpp/alarm.h>

#include <atomic>
#include <chrono>
#include <coroutine>

#include "core/base/cancellation.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/deadline.h"

namespace outrider {

// co_await Sleep(queue, duration, cancellation): the coroutine goes on later,
// or as soon as it is cancelled.
class Sleep final : public Completion {
 public:
  Sleep(CallQueue& queue, std::chrono::milliseconds duration,
        Cancellation& cancellation)
      : queue_(queue), duration_(duration), cancellation_(cancellation) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    awaiting_ = awaiting;
    Arm();
    alarm_.Set(queue_.queue(), DeadlineAfter(duration_), this);
    registration_ = cancellation_.OnCancel([this] { alarm_.Cancel(); });
    return unfinished_.fetch_sub(1) != 1;
  }
  void await_resume() { cancellation_.Forget(registration_); }

 private:
  void OnComplete(bool /*ok*/) override {
    if (unfinished_.fetch_sub(1) == 1) awaiting_.resume();
  }

  CallQueue& queue_;
  const std::chrono::milliseconds duration_;
  Cancellation& cancellation_;
  std::coroutine_handle<> awaiting_;
  uint64_t registration_ = 0;
  // The alarm, which may ring at once, and await_suspend: who is last resumes.
  std::atomic<int> unfinished_ = 2;
  grpc::Alarm alarm_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SLEEP_H_
