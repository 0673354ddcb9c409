// SPDX-License-Identifier: Apache-2.0
#include "core/base/end_at_signal.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "core/base/check.h"

namespace outrider {
namespace {

// What main does before any thread exists.
void BlockTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// From now on raise() does nothing, and says that it did: so it is, for signals
// of the default action, in the first process of a PID namespace. A namespace
// itself takes privileges that containers do not have.
void RaiseNothing() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {.len = 4, .filter = filter};
  OUTRIDER_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  OUTRIDER_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
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

TEST(EndAtSignalDeathTest, ABlockedSignalEndsTheFirstProcessOfANamespace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_for_it = [] {
    BlockTerminationSignals();
    RaiseNothing();
    const EndAtSignal ends;
    kill(getpid(), SIGTERM);
    sleep(10);
    _exit(0);
  };
  EXPECT_EXIT(wait_for_it(), ::testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(EndAtSignalDeathTest, ASignalThatIsIgnoredEndsNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto outlive_it = [] {
    BlockTerminationSignals();
    for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);
    {
      const EndAtSignal ends;
      kill(getpid(), SIGTERM);
    }
    EndAtNextSignal();
    kill(getpid(), SIGINT);
    _exit(7);
  };
  EXPECT_EXIT(outlive_it(), ::testing::ExitedWithCode(7), "");
}

TEST(EndAtNextSignalDeathTest, ItEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool raises : {true, false}) {
    const auto wait_for_it = [raises] {
      BlockTerminationSignals();
      if (!raises) RaiseNothing();
      EndAtNextSignal();
      kill(getpid(), SIGTERM);
      _exit(0);
    };
    if (raises) {
      EXPECT_EXIT(wait_for_it(), ::testing::KilledBySignal(SIGTERM), "");
    } else {
      EXPECT_EXIT(wait_for_it(), ::testing::ExitedWithCode(128 + SIGTERM), "");
    }
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
