// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/execution.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "core/kernels/activation.h"
#include "core/kernels/norm.h"
#include "core/kernels/random_values.h"
#include "core/kernels/rope.h"
#include "gtest/gtest.h"

namespace outrider::kernels {
namespace {

TEST(ExecutionTest, RangesCoverEverythingOnceAndAreLongEnough) {
  ThreadPool pool(3);
  for (const Execution& execution :
       {Execution(BestLevel()), Execution(BestLevel(), &pool)}) {
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

// All that is done row by row, and is not worth a test program of its own.
std::vector<float> RunRowKernels(int num_rows, const Execution& execution) {
  constexpr int kSize = 1000;
  const auto weight = RandomValues(kSize, 3);
  const auto angles = RandomValues(static_cast<size_t>(num_rows) * 20, 5);
  auto x = RandomValues(static_cast<size_t>(num_rows) * 2 * kSize, 7);
  std::vector<float> y(static_cast<size_t>(num_rows) * kSize);
  SiluMul(
      {.gate_up = x.data(), .num_rows = num_rows, .size = kSize, .y = y.data()},
      execution);
  NormArgs norm = {.x = y.data(),
                   .weight = weight.data(),
                   .num_rows = num_rows,
                   .size = kSize,
                   .epsilon = 1e-5f,
                   .y = y.data()};
  RmsNorm(norm, execution);
  ApplyRope({.x = y.data(),
             .row_stride = kSize,
             .num_rows = num_rows,
             .num_heads = 25,
             .head_dim = 40,
             .cos = angles.data(),
             .sin = angles.data()},
            execution);
  GeluNew(y.data(), y.size(), execution);
  norm.bias = weight.data();
  LayerNorm(norm, execution);
  return y;
}

TEST(ExecutionTest, RowKernelsGiveTheSameBitsWhateverTheNumberOfThreads) {
  ThreadPool pool(3);
  for (const Level level : SupportedLevels()) {
    for (const int num_rows : {1, 9, 64, 101}) {
      const auto alone = RunRowKernels(num_rows, level);
      const auto together = RunRowKernels(num_rows, {level, &pool});
      EXPECT_EQ(std::memcmp(alone.data(), together.data(),
                            alone.size() * sizeof(float)),
                0)
          << num_rows << " rows, " << LevelName(level);
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
