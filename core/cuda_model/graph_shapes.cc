// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_shapes.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cuda/attention.h"

namespace outrider {
namespace {

using kernels::cuda::NumTiles;

// A product reads the weights once for so many rows.
constexpr int kRowsOfProduct = 64;

int PowerOfTwo(int count) {
  if (count == 0) return 0;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
}

int RowsOfBucket(int num_rows) {
  if (num_rows <= kRowsOfProduct) return PowerOfTwo(num_rows);
  return (num_rows + kRowsOfProduct - 1) / kRowsOfProduct * kRowsOfProduct;
}

// The fewest rows of a bucket of so many.
int FewestRows(int num_rows) {
  return (num_rows <= kRowsOfProduct ? num_rows / 2
                                     : num_rows - kRowsOfProduct) +
         1;
}

bool HasRoom(const StepShape& bucket, const StepLimits& step,
             const CudaLimits& limits) {
  return bucket.num_rows <= std::min(limits.graph_rows, step.rows) &&
         bucket.num_tiles <= step.tiles() && bucket.num_logit_rows > 0;
}

// Buckets of up to `num_rows` rows.
class BucketsOfRows {
 public:
  // A tile has so many pairs.
  BucketsOfRows(int num_rows, int num_splits, const CudaLimits& limits,
                std::vector<GraphShape>& shapes)
      : num_rows_(num_rows),
        num_splits_(num_splits),
        limits_(limits),
        shapes_(shapes) {}

  // All rows may be of one session, or each of one of its own.
  void AddSteps(const StepLimits& step) {
    const int fewest = NumTiles(FewestRows(num_rows_), step.group);
    for (const int num_logit_rows : {num_rows_ / 2, num_rows_}) {
      AddTiles(fewest, {.num_logit_rows = num_logit_rows}, step);
    }
  }
  // One row a session.
  void AddLoops(const StepLimits& step) {
    const int fewest = FewestRows(num_rows_) * NumTiles(1, step.group);
    AddTiles(fewest, {.num_logit_rows = num_rows_, .draws_next = true}, step);
  }

 private:
  struct Kind {
    int num_logit_rows = 0;
    bool draws_next = false;
  };

  void AddTiles(int fewest, const Kind& kind, const StepLimits& step) {
    const int most = PowerOfTwo(num_rows_ * NumTiles(1, step.group));
    for (int tiles = PowerOfTwo(fewest); tiles <= most; tiles *= 2) {
      // Half as many are all that fit: that bucket is there, or never met.
      if (tiles * num_splits_ / 2 >= step.pairs) break;
      const StepShape bucket = {
          .num_rows = num_rows_,
          .num_tiles = tiles,
          .num_pairs = std::min(tiles * num_splits_, step.pairs),
          .num_logit_rows = kind.num_logit_rows};
      if (!HasRoom(bucket, step, limits_)) continue;
      shapes_.push_back({.step = bucket, .draws_next = kind.draws_next});
    }
  }

  const int num_rows_;
  const int num_splits_;
  const CudaLimits& limits_;
  std::vector<GraphShape>& shapes_;
};

}  // namespace

std::optional<StepShape> GraphBucket(const StepShape& shape,
                                     const StepLimits& step,
                                     const CudaLimits& limits) {
  const int num_rows = RowsOfBucket(shape.num_rows);
  const bool is_long = num_rows > kRowsOfProduct;
  if (is_long && shape.num_logit_rows <= num_rows / 4) return std::nullopt;
  if (shape.num_pairs > step.pairs) return std::nullopt;
  const int half = num_rows / 2;
  const bool is_half = shape.num_logit_rows <= half;
  const StepShape bucket = {
      .num_rows = num_rows,
      .num_tiles = PowerOfTwo(shape.num_tiles),
      .num_pairs = std::min(PowerOfTwo(shape.num_pairs), step.pairs),
      .num_logit_rows = shape.num_logit_rows == 0 ? 0
                        : is_half                 ? half
                                                  : num_rows};
  if (!HasRoom(bucket, step, limits)) return std::nullopt;
  return bucket;
}

std::vector<GraphShape> AllGraphShapes(const StepLimits& step,
                                       const StepLimits& loop,
                                       const CudaLimits& limits,
                                       int context_length) {
  std::vector<GraphShape> shapes;
  const int last = PowerOfTwo(kernels::cuda::NumSplits(context_length));
  for (int splits = 1; splits <= last; splits *= 2) {
    for (int rows = 1; rows <= limits.graph_rows;
         rows = RowsOfBucket(rows + 1)) {
      BucketsOfRows buckets(rows, splits, limits, shapes);
      buckets.AddSteps(step);
      buckets.AddLoops(loop);
    }
  }
  return shapes;
}

}  // namespace outrider
