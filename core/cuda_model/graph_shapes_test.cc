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
StepLimits Limits(int rows, int group, int pairs = 1 << 20) {
  return {.rows = rows,
          .table_entries = rows * NumKvBlocks(kContext),
          .group = group,
          .pairs = pairs};
}

std::optional<StepShape> BucketOf(const StepShape& shape, int group = 4) {
  const CudaLimits limits;
  return GraphBucket(shape, Limits(limits.rows, group), limits);
}

// A step of `count` sessions of so many tokens each, with logits of the last.
StepShape Sessions(int count, int num_tokens, int num_logit_rows) {
  return {.num_rows = count * num_tokens,
          .num_tiles = count * kernels::cuda::NumTiles(num_tokens, 4),
          .num_pairs = 2 * count * kernels::cuda::NumTiles(num_tokens, 4),
          .num_logit_rows = count * num_logit_rows};
}

std::set<GraphShape> All(int group, const CudaLimits& limits = {},
                         int pairs = 1 << 20) {
  const std::vector<GraphShape> shapes = AllGraphShapes(
      Limits(limits.rows, group, pairs),
      Limits(limits.loop_sessions, group, pairs), limits, kContext);
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
        are_long_(Below(2) == 0),
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
    ASSERT_EQ(
        step.Add({.blocks = blocks,
                  .cached_length = are_long_ ? longest_ - count
                                             : Below(longest_ - count + 1),
                  .tokens = tokens,
                  .num_rows = rows},
                 /*first=*/0),
        count);
    num_left_ -= count;
  }

  std::mt19937& random_;
  const bool is_loop_;
  const int longest_;
  const bool are_long_;  // all of them as long as that
  int num_left_;
};

TEST(GraphShapesTest, ABucketHasPowersOfTwoAndRowsThatCostTheSame) {
  EXPECT_EQ(BucketOf({5, 3, 6, 1}), (StepShape{8, 4, 8, 4}));
  EXPECT_EQ(BucketOf({64, 1, 5, 5}), (StepShape{64, 1, 8, 32}));
  EXPECT_EQ(BucketOf({33, 1, 4, 33}), (StepShape{64, 1, 4, 64}));
  EXPECT_EQ(BucketOf({1, 2, 2, 1}), (StepShape{1, 2, 2, 1}));
  EXPECT_EQ(BucketOf({65, 33, 33, 65}), (StepShape{128, 64, 64, 128}));
  EXPECT_EQ(BucketOf({320, 128, 129, 160}), (StepShape{320, 128, 256, 160}));
}

// A long session among short ones adds its own pairs, and none to the others.
TEST(GraphShapesTest, OneLongSessionIsNotThatOfAllOthers) {
  EXPECT_EQ(BucketOf({64, 64, 63 + 32, 64}), (StepShape{64, 64, 128, 64}));
}

TEST(GraphShapesTest, PairsAreNoMoreThanAttentionTakesAtOnce) {
  CudaLimits limits;
  StepLimits step = Limits(limits.rows, 4);
  step.pairs = 100;
  const auto bucket_of = [&](int num_pairs) {
    return GraphBucket({64, 16, num_pairs, 64}, step, limits);
  };
  EXPECT_EQ(bucket_of(64), (StepShape{64, 16, 64, 64}));
  EXPECT_EQ(bucket_of(65), (StepShape{64, 16, 100, 64}));
  EXPECT_EQ(bucket_of(100), (StepShape{64, 16, 100, 64}));
  EXPECT_EQ(bucket_of(101), std::nullopt);
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
    EXPECT_LE(shape.num_pairs, bucket->num_pairs);
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
void ExpectAllOfTheirs(int group, int most_pairs) {
  std::mt19937 random(2);
  const CudaLimits limits;
  const std::set<GraphShape> all = All(group, limits, most_pairs);
  std::set<GraphShape> met;
  for (int i = 0; i < 4000; ++i) {
    const bool is_loop = i % 4 == 0;
    const StepLimits step =
        Limits(is_loop ? limits.loop_sessions : limits.rows, group, most_pairs);
    // Every other step is a short one.
    const int num_rows = 1 + i % (i % 8 < 4 ? 64 : step.rows);
    const std::optional<StepShape> bucket = GraphBucket(
        SessionsOfStep(random, num_rows, is_loop).Shape(step), step, limits);
    if (!bucket.has_value()) continue;
    const GraphShape shape = {.step = *bucket, .draws_next = is_loop};
    EXPECT_TRUE(all.contains(shape))
        << group << ": " << bucket->num_rows << " rows, " << bucket->num_tiles
        << " tiles, " << bucket->num_pairs << " pairs, "
        << bucket->num_logit_rows << " rows of logits";
    met.insert(shape);
  }
  // And there are few that nobody needs.
  EXPECT_GT(met.size(), all.size() / 2) << group;
}

TEST(GraphShapesTest, EveryStepThatBecomesAGraphIsOneOfThem) {
  for (const int group : {1, 3, 4, 8, 16, 24, 71}) {
    ExpectAllOfTheirs(group, 1 << 20);
  }
}

TEST(GraphShapesTest, EveryStepIsWhereAttentionTakesFewPairsAtOnce) {
  for (const int most_pairs : {20, 64, 700, 2048}) {
    SCOPED_TRACE(most_pairs);
    for (const int group : {1, 4, 71}) ExpectAllOfTheirs(group, most_pairs);
  }
}

TEST(GraphShapesTest, ThereAreHundredsOfThemAndShortSessionsComeFirst) {
  const CudaLimits limits;
  for (const int group : {1, 4, 8}) {
    const std::vector<GraphShape> shapes =
        AllGraphShapes(Limits(limits.rows, group),
                       Limits(limits.loop_sessions, group), limits, 131072);
    EXPECT_LE(shapes.size(), 1300u) << group;
    EXPECT_EQ(shapes.front().step, (StepShape{1, 1, 1, 1}));
    const auto splits = [](const GraphShape& shape) {
      return shape.step.num_pairs / shape.step.num_tiles;
    };
    for (size_t i = 1; i < shapes.size(); ++i) {
      EXPECT_LE(splits(shapes[i - 1]), splits(shapes[i]));
    }
    EXPECT_EQ(splits(shapes.back()), 512);
  }
}

TEST(GraphShapesTest, StepsOfPromptsAreNone) {
  EXPECT_TRUE(BucketOf({64, 64, 64, 1}).has_value());
  EXPECT_FALSE(BucketOf({64, 64, 64, 0}).has_value());
  EXPECT_TRUE(BucketOf({512, 64, 64, 129}).has_value());
  EXPECT_FALSE(BucketOf({512, 64, 64, 128}).has_value());
}

TEST(GraphShapesTest, NoneIsLargerThanTheLimits) {
  const CudaLimits limits = {.rows = 37, .graph_rows = 20, .loop_sessions = 6};
  for (const GraphShape& shape : All(4, limits)) {
    EXPECT_LE(shape.step.num_rows, shape.draws_next ? 4 : 16);
  }
}

}  // namespace
}  // namespace outrider
