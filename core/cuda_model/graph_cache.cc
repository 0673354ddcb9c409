// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include <bit>

#include "core/kernels/cuda/attention.h"

namespace outrider {
namespace {

int PowerOfTwo(int count) {
  if (count == 0) return 0;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
}

}  // namespace

int LongestOfBucket(int longest) {
  return PowerOfTwo(kernels::cuda::NumSplits(longest)) *
         kernels::cuda::kSplitKeys;
}

StepShape BucketOf(const StepShape& shape) {
  return {.num_rows = PowerOfTwo(shape.num_rows),
          .num_tiles = PowerOfTwo(shape.num_tiles),
          .longest = LongestOfBucket(shape.longest),
          .num_logit_rows = PowerOfTwo(shape.num_logit_rows)};
}

}  // namespace outrider
