// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/worker.h"

#include <latch>
#include <vector>

#include "core/base/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using Urgency = Worker::Urgency;

Task<void> KeepIt(Worker& worker, std::latch& has_begun, std::latch& go_on) {
  co_await worker.TakeTurn(Urgency::kOrdinary);
  has_begun.count_down();
  go_on.wait();
}

Task<void> Note(Worker& worker, Urgency urgency, int number,
                std::vector<int>& order, std::latch& all) {
  co_await worker.TakeTurn(urgency);
  order.push_back(number);
  all.count_down();
}

TEST(WorkerTest, WhatIsUrgentComesFirstAndThenWhoCameFirst) {
  std::latch has_begun(1), go_on(1), all(4);
  std::vector<int> order;
  Worker worker(/*num_threads=*/1);
  StartDetached(KeepIt(worker, has_begun, go_on));
  has_begun.wait();
  StartDetached(Note(worker, Urgency::kOrdinary, 3, order, all));
  StartDetached(Note(worker, Urgency::kUrgent, 1, order, all));
  StartDetached(Note(worker, Urgency::kOrdinary, 4, order, all));
  StartDetached(Note(worker, Urgency::kUrgent, 2, order, all));
  go_on.count_down();
  all.wait();
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace outrider
