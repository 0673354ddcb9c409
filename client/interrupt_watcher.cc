// SPDX-License-Identifier: Apache-2.0
#include "client/interrupt_watcher.h"

#include "core/base/end_at_signal.h"

namespace outrider::client {
namespace {

// Wakes the watching thread at the end. Others may send it, too.
constexpr int kStop = SIGUSR1;

sigset_t WatchedSignals() {
  sigset_t signals = TerminationSignals();
  sigaddset(&signals, kStop);
  return signals;
}

}  // namespace

InterruptWatcher::InterruptWatcher(Cancellation& cancellation)
    : cancellation_(cancellation), signals_(WatchedSignals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::jthread([this] { Run(); });
}

InterruptWatcher::~InterruptWatcher() {
  is_over_ = true;
  pthread_kill(thread_.native_handle(), kStop);
}

void InterruptWatcher::Run() {
  int signal = kStop;
  while (signal == kStop) {
    sigwait(&signals_, &signal);
    if (is_over_) return;
  }
  cancellation_.Cancel();
  EndAtNextSignal();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, kStop);
  while (!is_over_) sigwait(&stop, &signal);
}

}  // namespace outrider::client
