// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_INTERRUPT_WATCHER_H_
#define OUTRIDER_CLIENT_INTERRUPT_WATCHER_H_

#include <atomic>
#include <csignal>
#include <thread>

#include "core/base/cancellation.h"

namespace outrider::client {

// Turns the first SIGINT or SIGTERM into a cancellation; a second one ends the
// process, as if nobody watched. SIGUSR1 is its own, and does nothing to the
// process meanwhile. Must be made before other threads, which
// inherit its signal mask, and outlived by the cancellation.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(Cancellation& cancellation);
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;
  ~InterruptWatcher();

 private:
  void Run();

  Cancellation& cancellation_;
  sigset_t signals_;  // what the thread waits for
  std::atomic<bool> is_over_ = false;
  std::jthread thread_;
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_INTERRUPT_WATCHER_H_
