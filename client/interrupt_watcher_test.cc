// SPDX-License-Identifier: Apache-2.0
#include "client/interrupt_watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace outrider::client {
namespace {

// Far beyond what a signal takes, so that only a lost one fails.
template <typename Condition>
bool Becomes(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

bool IsTaken(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 0;
}

// Somebody outside does the same: the signal is for whichever thread takes it.
bool SendAndSeeTaken(int signal) {
  kill(getpid(), signal);
  return Becomes([signal] { return IsTaken(signal); });
}

// Each in a process of its own: a watcher is made before other threads, and
// changes what signals do.
[[noreturn]] void InterruptAfterAStrangersSignals() {
  Cancellation cancellation;
  const InterruptWatcher watcher(cancellation);
  bool is_well = SendAndSeeTaken(SIGUSR1) && SendAndSeeTaken(SIGUSR1) &&
                 !cancellation.cancelled() && SendAndSeeTaken(SIGINT);
  is_well = is_well && Becomes([&] { return cancellation.cancelled(); });
  std::_Exit(is_well ? 0 : 1);
}

[[noreturn]] void InterruptTwiceAroundAStrangersSignal() {
  Cancellation cancellation;
  const InterruptWatcher watcher(cancellation);
  kill(getpid(), SIGINT);
  const bool is_well = Becomes([&] { return cancellation.cancelled(); }) &&
                       SendAndSeeTaken(SIGUSR1);
  if (is_well) kill(getpid(), SIGINT);
  Becomes([] { return false; });
  std::_Exit(1);
}

[[noreturn]] void EndWithoutAnInterrupt() {
  Cancellation cancellation;
  { const InterruptWatcher watcher(cancellation); }
  std::_Exit(cancellation.cancelled() ? 1 : 0);
}

TEST(InterruptWatcherDeathTest, AStrangersSignalDoesNotEndTheWatch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptAfterAStrangersSignals(), testing::ExitedWithCode(0),
              "");
}

TEST(InterruptWatcherDeathTest, ASecondInterruptEndsTheProcessAllTheSame) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptTwiceAroundAStrangersSignal(),
              testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptWatcherDeathTest, ItsEndNeedsNoSignalFromOutside) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(EndWithoutAnInterrupt(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace outrider::client
