// SPDX-License-Identifier: Apache-2.0
#include "core/base/task.h"

#include <coroutine>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/testing/gate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Gate;
using ::testing::ElementsAre;

using Journal = std::vector<std::string>;

Task<int> Answer(Journal& journal, int answer) {
  journal.push_back("answer");
  co_return answer;
}
Task<void> Ask(Journal& journal, int& result) {
  journal.push_back("ask");
  Task<int> task = Answer(journal, 42);
  journal.push_back("made");
  result = co_await task;
  journal.push_back("done");
}

TEST(TaskTest, BeginsWhenItIsAwaitedAndNotBefore) {
  Journal journal;
  int result = 0;
  Task<void> task = Ask(journal, result);
  EXPECT_TRUE(journal.empty());
  StartDetached(std::move(task));
  EXPECT_EQ(result, 42);
  EXPECT_THAT(journal, ElementsAre("ask", "made", "answer", "done"));
}

Task<std::unique_ptr<int>> MoveOnly() { co_return std::make_unique<int>(7); }
Task<void> TakeMoveOnly(int& result) { result = *co_await MoveOnly(); }

TEST(TaskTest, YieldsWhatCanOnlyBeMoved) {
  int result = 0;
  StartDetached(TakeMoveOnly(result));
  EXPECT_EQ(result, 7);
}

TEST(TaskTest, OneThatIsNeverAwaitedLeaksNothing) {
  auto owner = std::make_shared<int>(1);
  const auto hold = [](std::shared_ptr<int> held) -> Task<int> {
    co_return *held;
  };
  {
    Task<int> task = hold(owner);
    Task<int> moved = std::move(task);
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

Task<int> Wait(Gate& gate, int result) {
  co_await gate;
  co_return result;
}
Task<void> WaitTwice(Gate& first, Gate& second, int& sum) {
  sum += co_await Wait(first, 1);
  sum += co_await Wait(second, 2);
}

TEST(TaskTest, GoesOnWhereItWaited) {
  Gate first;
  Gate second;
  int sum = 0;
  StartDetached(WaitTwice(first, second, sum));
  EXPECT_EQ(sum, 0);
  first.Open();
  EXPECT_EQ(sum, 1);
  // It may run on another thread after a co_await.
  std::thread([&] { second.Open(); }).join();
  EXPECT_EQ(sum, 3);
}

Task<int> Count(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await Count(depth - 1);
}
Task<void> Store(Task<int> task, int& result) { result = co_await task; }

TEST(TaskTest, NestsDeeply) {
  int result = 0;
  StartDetached(Store(Count(1000), result));
  EXPECT_EQ(result, 1000);
}

}  // namespace
}  // namespace outrider
