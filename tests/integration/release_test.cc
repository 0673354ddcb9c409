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
  // Far less than the lease, which would release them, too.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto num_held = [&] {
    return cluster.verifier().num_sessions() + cluster.drafter().num_sessions();
  };
  while (num_held() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(num_held(), 0);
}

}  // namespace
}  // namespace outrider::testing
