// SPDX-License-Identifier: Apache-2.0
#include "core/base/end_at_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace outrider {
namespace {

// What main does before any thread exists.
void BlockTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

TEST(EndAtSignalDeathTest, ABlockedSignalEndsTheProcessWhileItLives) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto wait_for_it = [signal] {
      BlockTerminationSignals();
      const EndAtSignal ends;
      kill(getpid(), signal);
      while (true) pause();
    };
    EXPECT_EXIT(wait_for_it(), ::testing::KilledBySignal(signal), "");
  }
}

TEST(EndAtSignalDeathTest, ASignalThatComesLaterIsLeftToWhoWaitsForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto take_it = [] {
    BlockTerminationSignals();
    { const EndAtSignal ends; }
    kill(getpid(), SIGTERM);
    const sigset_t signals = TerminationSignals();
    int signal = 0;
    sigwait(&signals, &signal);
    _exit(signal == SIGTERM ? 7 : 1);
  };
  EXPECT_EXIT(take_it(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace outrider
