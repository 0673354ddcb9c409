// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/answer_threads.h"

#include <chrono>
#include <cstddef>
#include <set>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// Which threads look at so many rows, each as often as once. The first one
// waits for others, as many as are said.
std::set<std::thread::id> WhoLooks(AnswerThreads& threads, int num_rows,
                                   int num_logits, size_t num_awaited) {
  std::vector<int> times(num_rows);
  Mutex mu;
  CondVar another;
  std::set<std::thread::id> who;
  threads.ForEachRow(num_rows, num_logits, [&](int i) {
    const MutexLock lock(mu);
    ++times[i];
    who.insert(std::this_thread::get_id());
    another.NotifyAll();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(9);
    while (who.size() < num_awaited && another.WaitUntil(mu, end)) {
    }
  });
  EXPECT_THAT(times, Each(1));
  return who;
}

TEST(AnswerThreadsTest, ManyLogitsAreLookedAtByAll) {
  AnswerThreads threads({.num_threads = 3, .logits_of_part = 100});
  EXPECT_THAT(WhoLooks(threads, 7, 700, /*num_awaited=*/3), SizeIs(3));
  EXPECT_THAT(WhoLooks(threads, 256, 256 * 1024, /*num_awaited=*/3), SizeIs(3));
}

TEST(AnswerThreadsTest, FewAreLookedAtByTheThreadThatHasThem) {
  AnswerThreads threads({.num_threads = 3, .logits_of_part = 100});
  for (const int num_logits : {0, 1, 599}) {
    const auto who = WhoLooks(threads, 64, num_logits, /*num_awaited=*/1);
    EXPECT_EQ(who, std::set{std::this_thread::get_id()});
  }
  EXPECT_THAT(WhoLooks(threads, 0, 0, /*num_awaited=*/1), SizeIs(0));
  AnswerThreads alone({.num_threads = 1, .logits_of_part = 100});
  EXPECT_THAT(WhoLooks(alone, 64, 6400, /*num_awaited=*/1), SizeIs(1));
}

}  // namespace
}  // namespace outrider
