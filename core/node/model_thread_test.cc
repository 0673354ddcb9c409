// SPDX-License-Identifier: Apache-2.0
#include "core/node/model_thread.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

void Nothing() {}

TEST(ModelThreadTest, AJobThatFindsTheModelIdleRunsOnTheCallersThread) {
  ModelThread model(/*max_queue_length=*/1, Nothing);
  std::thread::id ran_on;
  ASSERT_TRUE(model.Submit([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(ModelThreadTest, JobsBehindABusyModelAreQueuedInOrderUpToTheLimit) {
  std::vector<int> order;
  std::promise<void> begun;
  std::promise<void> may_end;
  ModelThread model(/*max_queue_length=*/2, Nothing);
  std::thread first([&] {
    EXPECT_TRUE(model.Submit([&] {
      begun.set_value();
      may_end.get_future().wait();
    }));
  });
  begun.get_future().wait();
  std::promise<void> done;
  EXPECT_TRUE(model.Submit([&] { order.push_back(1); }));
  EXPECT_TRUE(model.Submit([&] {
    order.push_back(2);
    done.set_value();
  }));
  EXPECT_FALSE(model.Submit([&] { order.push_back(3); }));
  may_end.set_value();
  done.get_future().wait();
  first.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(ModelThreadTest, NoTwoJobsEverRunTogether) {
  std::atomic<int> running = 0;
  int num_run = 0;  // guarded by the model
  {
    ModelThread model(/*max_queue_length=*/1000, Nothing);
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          EXPECT_TRUE(model.Submit([&] {
            EXPECT_EQ(running.fetch_add(1), 0);
            ++num_run;
            running.fetch_sub(1);
          }));
        }
      });
    }
  }
  EXPECT_EQ(num_run, 800);
}

TEST(ModelThreadTest, HousekeepingRunsWithoutJobs) {
  std::promise<void> kept;
  bool first = true;
  ModelThread model(/*max_queue_length=*/1, [&] {
    if (first) kept.set_value();
    first = false;
  });
  kept.get_future().wait();
}

TEST(ModelThreadTest, TheDestructorRunsWhatIsQueued) {
  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<bool> ran = false;
  std::jthread first;
  {
    ModelThread model(/*max_queue_length=*/1, Nothing);
    first = std::jthread([&] {
      EXPECT_TRUE(model.Submit([&] {
        begun.set_value();
        may_end.get_future().wait();
      }));
    });
    begun.get_future().wait();
    EXPECT_TRUE(model.Submit([&] { ran = true; }));
    may_end.set_value();
    first.join();
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace outrider
