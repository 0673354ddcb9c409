// SPDX-License-Identifier: Apache-2.0
#include "core/testing/enumerating_source.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

constexpr CoinKey kFirst = {Purpose::kDraft, 1};
constexpr CoinKey kSecond = {Purpose::kAccept, 1};

TEST(EnumeratingSourceTest, WalksEveryBranchOnceAndItsMassIsOne) {
  EnumeratingSource source;
  std::map<std::pair<size_t, bool>, double> seen;
  while (source.NextTrace()) {
    const size_t index = source.Categorical(kFirst, {1.0, 0.0, 3.0});
    const bool yes = source.Accept(kSecond, 0.25, 0.5);
    EXPECT_TRUE(
        seen.emplace(std::pair(index, yes), source.probability()).second);
  }
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_DOUBLE_EQ((seen[{0, true}]), 0.125);
  EXPECT_DOUBLE_EQ((seen[{2, false}]), 0.375);
  EXPECT_EQ(source.violation(), "");
}

TEST(EnumeratingSourceTest, CertainAnswersDoNotFork) {
  EnumeratingSource source;
  int num_traces = 0;
  while (source.NextTrace()) {
    ++num_traces;
    EXPECT_TRUE(source.Accept({Purpose::kAccept, 1}, 0.5, 0.5));
    EXPECT_FALSE(source.Accept({Purpose::kAccept, 2}, 0.0, 0.5));
    EXPECT_EQ(source.Categorical({Purpose::kTail, 3}, {0.0, 2.0}), 1u);
  }
  EXPECT_EQ(num_traces, 1);
}

TEST(EnumeratingSourceTest, AnEqualKeyRepeatsItsAnswer) {
  EnumeratingSource source;
  int num_traces = 0;
  while (source.NextTrace()) {
    ++num_traces;
    const size_t index = source.Categorical(kFirst, {1.0, 1.0});
    EXPECT_EQ(source.Categorical(kFirst, {1.0, 1.0}), index);
  }
  EXPECT_EQ(num_traces, 2);
  EXPECT_EQ(source.violation(), "");
}

TEST(EnumeratingSourceTest, AnEqualKeyForAnotherQuestionIsAViolation) {
  EnumeratingSource source;
  while (source.NextTrace()) {
    source.Categorical(kFirst, {1.0, 1.0});
    source.Categorical(kFirst, {1.0, 2.0});
  }
  EXPECT_NE(source.violation(), "");
}

TEST(EnumeratingSourceTest, SharedUniformsAnswerAsOneNumberWould) {
  EnumeratingSource source({}, EnumeratingSource::Reuse::kShareUniform);
  std::map<std::pair<size_t, size_t>, double> seen;
  while (source.NextTrace()) {
    const size_t half = source.Categorical(kFirst, {1.0, 1.0});
    const size_t third = source.Categorical(kFirst, {1.0, 1.0, 1.0});
    seen[{half, third}] += source.probability();
  }
  // The halves and thirds of [0, 1) meet in four intervals.
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_NEAR((seen[{0, 0}]), 1.0 / 3, 1e-15);
  EXPECT_NEAR((seen[{0, 1}]), 1.0 / 6, 1e-15);
  EXPECT_NEAR((seen[{1, 1}]), 1.0 / 6, 1e-15);
  EXPECT_NEAR((seen[{1, 2}]), 1.0 / 3, 1e-15);
}

TEST(EnumeratingSourceTest, APastIsRepeatedAndNotCounted) {
  EnumeratingSource all;
  ASSERT_TRUE(all.NextTrace());
  all.Categorical(kFirst, {1.0, 1.0});
  ASSERT_TRUE(all.NextTrace());
  ASSERT_EQ(all.Categorical(kFirst, {1.0, 1.0}), 1u);

  EnumeratingSource source(all.path());
  int num_traces = 0;
  while (source.NextTrace()) {
    ++num_traces;
    EXPECT_EQ(source.Categorical(kFirst, {1.0, 1.0}), 1u);
    source.Accept(kSecond, 0.2, 1.0);
    EXPECT_DOUBLE_EQ(source.probability(), num_traces == 1 ? 0.2 : 0.8);
  }
  EXPECT_EQ(num_traces, 2);
}

}  // namespace
}  // namespace outrider::testing
