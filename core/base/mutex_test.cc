// SPDX-License-Identifier: Apache-2.0
#include "core/base/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

struct Counter {
  Mutex mu;
  CondVar changed;
  int value ABSL_GUARDED_BY(mu) = 0;
};

TEST(MutexTest, KeepsCountsOfManyThreads) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (int j = 0; j < 1000; ++j) {
        MutexLock lock(counter.mu);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(counter.mu);
  EXPECT_EQ(counter.value, 4000);
}

TEST(CondVarTest, WaitsUntilTheConditionHolds) {
  Counter counter;
  std::thread other([&counter] {
    MutexLock lock(counter.mu);
    counter.value = 1;
    counter.changed.NotifyAll();
  });
  {
    MutexLock lock(counter.mu);
    while (counter.value == 0) counter.changed.Wait(counter.mu);
    EXPECT_EQ(counter.value, 1);
  }
  other.join();
}

TEST(CondVarTest, TellsThatTheDeadlineHasPassedAndHoldsTheLock) {
  Counter counter;
  MutexLock lock(counter.mu);
  bool in_time = true;
  while (in_time) {
    in_time =
        counter.changed.WaitUntil(counter.mu, std::chrono::steady_clock::now());
  }
  counter.value = 1;
}

}  // namespace
}  // namespace outrider
