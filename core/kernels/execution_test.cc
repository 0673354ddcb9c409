// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/execution.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(ExecutionTest, RangesCoverEverythingOnceAndAreLongEnough) {
  ThreadPool pool(3);
  for (const Execution& execution :
       {Execution(), Execution(BestLevel(), &pool)}) {
    for (const int count : {0, 1, 5, 64, 1000}) {
      for (const int least : {1, 7, 64, 5000}) {
        std::vector<std::atomic<int>> times(count);
        execution.ForRanges(count, least, [&](int begin, int end) {
          EXPECT_TRUE(end - begin >= least || end - begin == count);
          for (int i = begin; i < end; ++i) times[i].fetch_add(1);
        });
        for (const auto& number : times) EXPECT_EQ(number.load(), 1);
      }
    }
  }
}

TEST(ExecutionTest, ThereIsMoreThanOneRangeWhereThereIsWorkForTwo) {
  ThreadPool pool(2);
  std::atomic<int> num_ranges{0};
  Execution(BestLevel(), &pool).ForRanges(10, 5, [&](int, int) {
    num_ranges.fetch_add(1);
  });
  EXPECT_EQ(num_ranges.load(), 2);
}

}  // namespace
}  // namespace outrider::kernels
