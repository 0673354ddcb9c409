// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/thread_pool.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <latch>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(ThreadPoolTest, EveryPartIsDoneOnceWhateverTheNumberOfThreadsAndParts) {
  for (const int num_threads : {1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), num_threads);
    for (const int num_parts : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> times(num_parts);
      pool.Run(num_parts, [&](int part) { times[part].fetch_add(1); });
      for (const auto& count : times) EXPECT_EQ(count.load(), 1);
    }
  }
}

// Each job overwrites what the one before has left: a helper that came late to
// a job and took a part of the next one by mistake would be seen here.
TEST(ThreadPoolTest, JobsThatFollowEachOtherCloselyDoNotMix) {
  ThreadPool pool(4);
  for (int job = 0; job < 20000; ++job) {
    const int num_parts = 2 + job % 5;
    std::vector<int> results(num_parts, -1);
    pool.Run(num_parts, [&, job](int part) { results[part] = job + part; });
    for (int part = 0; part < num_parts; ++part) {
      ASSERT_EQ(results[part], job + part);
    }
  }
}

TEST(ThreadPoolTest, PartsRunAtTheSameTime) {
  ThreadPool pool(3);
  std::latch all_here(3);  // deadlocks on fewer than three threads
  pool.Run(3, [&](int) { all_here.arrive_and_wait(); });
}

TEST(ThreadPoolTest, AJobInsideAJobRunsOnItsOwnThread) {
  ThreadPool pool(3);
  std::atomic<int> sum{0};
  pool.Run(5, [&](int) {
    const auto self = std::this_thread::get_id();
    pool.Run(4, [&](int part) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      sum.fetch_add(part);
    });
  });
  EXPECT_EQ(sum.load(), 5 * (0 + 1 + 2 + 3));
}

TEST(ThreadPoolTest, CallersAtTheSameTimeGetAllOfTheirOwnPartsDone) {
  ThreadPool pool(2);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&pool] {
      for (int job = 0; job < 500; ++job) {
        std::atomic<int> sum{0};
        pool.Run(6, [&](int part) { sum.fetch_add(part); });
        ASSERT_EQ(sum.load(), 15);
      }
    });
  }
}

TEST(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolGoesOn) {
  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    for (int repetition = 0; repetition < 100; ++repetition) {
      EXPECT_THROW(pool.Run(8,
                            [](int part) {
                              if (part % 3 == 1) throw std::runtime_error("no");
                            }),
                   std::runtime_error);
      std::atomic<int> num_done{0};
      pool.Run(8, [&](int) { num_done.fetch_add(1); });
      EXPECT_EQ(num_done.load(), 8);
    }
  }
}

TEST(ThreadPoolTest, APoolThatIsNeverUsedEnds) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
}

// 'S' for one that sleeps; "comm" is in parentheses and may hold anything.
char StateOf(int thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  return line.at(line.rfind(')') + 2);
}

TEST(ThreadPoolTest, HelpersWithoutWorkSleepAndWakeForTheNextJob) {
  ThreadPool pool(3);
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::vector<int> threads(3);
    std::latch all_here(3);
    pool.Run(3, [&](int part) {
      threads[part] = static_cast<int>(syscall(SYS_gettid));
      all_here.arrive_and_wait();
    });
    for (const int thread : threads) {
      if (thread == syscall(SYS_gettid)) continue;
      while (StateOf(thread) != 'S') std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
