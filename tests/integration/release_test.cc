// SPDX-License-Identifier: Apache-2.0
// Sessions that end before their nodes have answered: their caches do not stay.
#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

// A model that takes its time, so that a pass can be cancelled under way.
TableLm::Table Slowly(TableLm::Table table) {
  return [table = std::move(table)](absl::Span<const TokenId> context) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return table(context);
  };
}

TEST(ReleaseTest, SessionsCancelledInTheirFirstRoundLeaveNoCaches) {
  InProcessCluster::Options options = SmallCluster();
  options.target.table = Slowly(options.target.table);
  options.draft.table = Slowly(options.draft.table);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  for (int i = 0; i < 100; ++i) {
    const auto stream = cluster.client().Generate(Greedy({5}, 500, /*k=*/4),
                                                  std::chrono::minutes(1));
    // Cancelled wherever this finds it: on its way to the nodes, in their
    // queues, in a pass, or back.
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 50)));
  }
  // No generation runs any more, and none can begin.
  ASSERT_TRUE(cluster.service().Drain(std::chrono::seconds(30)));
  // Far less than the lease, which would release them, too. A call that a node
  // still has could bring a cache back: none may be left either.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto num_left = [](LocalNode& node) {
    return node.counters().num_running() + node.num_sessions();
  };
  const auto is_over = [&] {
    return num_left(cluster.verifier()) + num_left(cluster.drafter()) == 0;
  };
  while (!is_over() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(num_left(cluster.verifier()), 0);
  EXPECT_EQ(num_left(cluster.drafter()), 0);
}

}  // namespace
}  // namespace outrider::testing
