// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/sleep.h"

#include <chrono>
#include <future>

#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Task<void> SleepThenTell(CallQueue& queue, milliseconds duration,
                         Cancellation& cancellation, std::promise<void>& told) {
  co_await Sleep(queue, duration, cancellation);
  told.set_value();
}

class SleepTest : public ::testing::Test {
 protected:
  std::future<void> Start(milliseconds duration) {
    StartDetached(SleepThenTell(queue_, duration, cancellation_, told_));
    return told_.get_future();
  }

  CallQueue queue_{/*num_threads=*/1};
  Cancellation cancellation_;
  std::promise<void> told_;
};

TEST_F(SleepTest, EndsByItself) { Start(milliseconds(1)).wait(); }

TEST_F(SleepTest, OfNoTimeEnds) { Start(milliseconds(0)).wait(); }

TEST_F(SleepTest, EndsWhenItIsCancelled) {
  const std::future<void> slept = Start(hours(1));
  cancellation_.Cancel();
  slept.wait();
}

TEST_F(SleepTest, DoesNotBeginWhereAllIsCancelled) {
  cancellation_.Cancel();
  Start(hours(1)).wait();
}

}  // namespace
}  // namespace outrider
