// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_shapes.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr int kContext = 5000;

// There is room for sessions of any length.
StepLimits Limits(int rows, int group) {
  return {.rows = rows,
          .table_entries = rows * NumKvBlocks(kContext),
          .group = group};
}

std::optional<StepShape> BucketOf(const StepShape& shape, int group = 4) {
  const CudaLimits limits;
  return GraphBucket(shape, Limits(limits.rows, group), limits);
}

// A step of `count` sessions of so many tokens each, with logits of the last.
StepShape Sessions(int count, int num_tokens, int num_logit_rows) {
  return {.num_rows = count * num_tokens,
          .num_tiles = count * kernels::cuda::NumTiles(num_tokens, 4),
          .longest = 300,
          .num_logit_rows = count * num_logit_rows};
}

std::set<GraphShape> All(int group, const CudaLimits& limits = {}) {
  const std::vector<GraphShape> shapes =
      AllGraphShapes(Limits(limits.rows, group),
                     Limits(limits.loop_sessions, group), limits, kContext);
  const std::set<GraphShape> all(shapes.begin(), shapes.end());
  EXPECT_EQ(all.size(), shapes.size()) << "some are there twice";
  return all;
}

// Sessions in a step, as they come: the tokens of each, up to the limit, and
// how many of its last ones have logits.
class SessionsOfStep {
 public:
  SessionsOfStep(std::mt19937& random, int num_rows, bool is_loop)
      : random_(random),
        is_loop_(is_loop),
        longest_(kContext >> Below(5)),
        num_left_(num_rows) {}

  // The shape of a step of them.
  StepShape Shape(const StepLimits& limits) {
    static std::vector<int> memory;
    memory.resize(StepArrays::Bytes(limits) / sizeof(int));
    StepInputs step(limits, memory.data());
    // Many short sessions, or few long ones.
    const int most = 1 + Below(num_left_);
    while (num_left_ > 0) AddOne(most, step);
    return step.shape();
  }

 private:
  int Below(int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random_);
  }

  void AddOne(int most, StepInputs& step) {
    const int count =
        is_loop_ ? 1 : std::min({num_left_, 1 + Below(most), longest_});
    const std::vector<TokenId> tokens(static_cast<size_t>(count), 0);
    const std::vector<KvBlockId> blocks(
        static_cast<size_t>(NumKvBlocks(kContext)), 0);
    const int rows = is_loop_ || Below(2) == 0 ? count : Below(count + 1);
    ASSERT_EQ(step.Add({.blocks = blocks,
                        .cached_length = Below(longest_ - count + 1),
                        .tokens = tokens,
                        .num_rows = rows},
                       /*first=*/0),
              count);
    num_left_ -= count;
  }

  std::mt19937& random_;
  const bool is_loop_;
  const int longest_;
  int num_left_;
};

TEST(GraphShapesTest, ABucketHasWholeSplitsAndRowsThatCostTheSame) {
  EXPECT_EQ(BucketOf({5, 3, 257, 1}), (StepShape{8, 4, 512, 4}));
  EXPECT_EQ(BucketOf({64, 1, 1025, 5}), (StepShape{64, 1, 2048, 32}));
  EXPECT_EQ(BucketOf({33, 1, 1024, 33}), (StepShape{64, 1, 1024, 64}));
  EXPECT_EQ(BucketOf({1, 2, 256, 1}), (StepShape{1, 2, 256, 1}));
  EXPECT_EQ(BucketOf({65, 33, 256, 65}), (StepShape{128, 64, 256, 128}));
  EXPECT_EQ(BucketOf({320, 128, 256, 160}), (StepShape{320, 128, 256, 160}));
}

TEST(GraphShapesTest, AStepIsNoLargerThanItsBucketWhichIsItsOwn) {
  std::mt19937 random(1);
  for (int num_rows = 1; num_rows <= 512; ++num_rows) {
    const StepShape shape = SessionsOfStep(random, num_rows, /*is_loop=*/false)
                                .Shape(Limits(512, 4));
    const std::optional<StepShape> bucket = BucketOf(shape);
    if (!bucket.has_value()) continue;
    EXPECT_LE(shape.num_rows, bucket->num_rows);
    EXPECT_LE(shape.num_tiles, bucket->num_tiles);
    EXPECT_LE(shape.longest, bucket->longest);
    EXPECT_LE(shape.num_logit_rows, bucket->num_logit_rows);
    EXPECT_EQ(BucketOf(*bucket), bucket);
  }
}

TEST(GraphShapesTest, RoundsOfUpTo64SessionsAre) {
  for (int count = 1; count <= 64; ++count) {
    SCOPED_TRACE(count);
    // A verifier's, of four drafts each, and a drafter's: of one token, or of
    // two, where it has yet to take in the last one that it drafted.
    EXPECT_TRUE(BucketOf(Sessions(count, 5, 5)).has_value());
    EXPECT_TRUE(BucketOf(Sessions(count, 1, 1)).has_value());
    EXPECT_TRUE(BucketOf(Sessions(count, 2, 1)).has_value());
  }
}

// Whoever is in a step, its graph is one that was captured before.
TEST(GraphShapesTest, EveryStepThatBecomesAGraphIsOneOfThem) {
  std::mt19937 random(2);
  for (const int group : {1, 3, 4, 8, 16, 24, 71}) {
    const std::set<GraphShape> all = All(group);
    std::set<GraphShape> met;
    for (int i = 0; i < 4000; ++i) {
      const bool is_loop = i % 4 == 0;
      const CudaLimits limits;
      const StepLimits step =
          Limits(is_loop ? limits.loop_sessions : limits.rows, group);
      // Every other step is a short one.
      const int num_rows = 1 + i % (i % 8 < 4 ? 64 : step.rows);
      const std::optional<StepShape> bucket = GraphBucket(
          SessionsOfStep(random, num_rows, is_loop).Shape(step), step, limits);
      if (!bucket.has_value()) continue;
      const GraphShape shape = {.step = *bucket, .draws_next = is_loop};
      EXPECT_TRUE(all.contains(shape))
          << group << ": " << bucket->num_rows << " rows, " << bucket->num_tiles
          << " tiles, " << bucket->longest << " positions, "
          << bucket->num_logit_rows << " rows of logits";
      met.insert(shape);
    }
    // And there are few that nobody needs.
    EXPECT_GT(met.size(), all.size() / 2) << group;
  }
}

TEST(GraphShapesTest, ThereAreHundredsOfThemAndShortSessionsComeFirst) {
  const CudaLimits limits;
  for (const int group : {1, 4, 8}) {
    const std::vector<GraphShape> shapes =
        AllGraphShapes(Limits(limits.rows, group),
                       Limits(limits.loop_sessions, group), limits, 131072);
    EXPECT_LE(shapes.size(), 1300u) << group;
    EXPECT_EQ(shapes.front().step, (StepShape{1, 1, 256, 1}));
    for (size_t i = 1; i < shapes.size(); ++i) {
      EXPECT_LE(shapes[i - 1].step.longest, shapes[i].step.longest);
    }
    EXPECT_EQ(shapes.back().step.longest, 131072);
  }
}

TEST(GraphShapesTest, StepsOfPromptsAreNone) {
  EXPECT_TRUE(BucketOf({64, 64, 256, 1}).has_value());
  EXPECT_FALSE(BucketOf({64, 64, 256, 0}).has_value());
  EXPECT_TRUE(BucketOf({512, 64, 256, 129}).has_value());
  EXPECT_FALSE(BucketOf({512, 64, 256, 128}).has_value());
}

TEST(GraphShapesTest, NoneIsLargerThanTheLimits) {
  const CudaLimits limits = {.rows = 37, .graph_rows = 20, .loop_sessions = 6};
  for (const GraphShape& shape : All(4, limits)) {
    EXPECT_LE(shape.step.num_rows, shape.draws_next ? 4 : 16);
  }
}

}  // namespace
}  // namespace outrider
