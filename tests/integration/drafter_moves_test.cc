// SPDX-License-Identifier: Apache-2.0
// Streams whose drafter comes late, drains or dies, over real gRPC in one
// process: another drafts on, and no token changes.
#include <chrono>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/long_stream.h"

namespace outrider::testing {
namespace {

int64_t NumDrafterMoves(InProcessCluster& cluster, MoveReason reason) {
  return cluster.pool().moves().of_drafters[static_cast<int>(reason)];
}

// Reads on until drafts were accepted after a move for this reason.
::testing::AssertionResult ReadUntilMoved(LongStream& stream,
                                          InProcessCluster& cluster,
                                          MoveReason reason) {
  return stream.ReadUntil([&, num_after = 0](const RoundStats& round) mutable {
    num_after += round.num_accepted > 0 && NumDrafterMoves(cluster, reason) > 0;
    return num_after == 20;
  });
}

InProcessCluster::Options TwoDrafters() {
  InProcessCluster::Options options = LongStream::Cluster();
  options.other_drafts = {options.draft};
  return options;
}

TEST(DrafterMovesTest, AStreamThatBeganWithoutADrafterGetsTheOneThatComes) {
  InProcessCluster cluster(LongStream::Cluster());
  ASSERT_TRUE(cluster.WaitUntilReady());
  cluster.StopDrafter();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cluster.pool().CountDrafters(NodeState::kReady) > 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  LongStream stream(cluster);
  ASSERT_TRUE(stream.ReadUntil([](const RoundStats&) { return true; }));
  cluster.StartDrafter();
  ASSERT_TRUE(ReadUntilMoved(stream, cluster, MoveReason::kFound));
  EXPECT_EQ(NumDrafterMoves(cluster, MoveReason::kFound), 1);
  stream.ExpectPlain();
}

TEST(DrafterMovesTest, AStreamWhoseDrafterDrainsTakesAnotherBetweenTwoRounds) {
  InProcessCluster cluster(TwoDrafters());
  ASSERT_TRUE(cluster.WaitUntilReady());
  LongStream stream(cluster);
  ASSERT_TRUE(stream.ReadUntilNumAccepted(1));
  LocalNode* drained = &cluster.drafter();
  LocalNode* other = &cluster.other_drafter(0);
  if (drained->num_sessions() == 0) std::swap(drained, other);
  drained->counters().draining = true;
  ASSERT_TRUE(ReadUntilMoved(stream, cluster, MoveReason::kDraining));
  ASSERT_TRUE(stream.ReadUntil(
      [&](const RoundStats&) { return drained->num_sessions() == 0; }));
  EXPECT_EQ(other->num_sessions(), 1);
  stream.ExpectPlain();
}

TEST(DrafterMovesTest, AStreamWhoseDrafterDiesTakesAnother) {
  InProcessCluster cluster(TwoDrafters());
  ASSERT_TRUE(cluster.WaitUntilReady());
  LongStream stream(cluster);
  ASSERT_TRUE(stream.ReadUntilNumAccepted(1));
  if (cluster.drafter().num_sessions() > 0) {
    cluster.StopDrafter();
  } else {
    cluster.StopOtherDrafter(0);
  }
  ASSERT_TRUE(ReadUntilMoved(stream, cluster, MoveReason::kLost));
  stream.ExpectPlain();
}

}  // namespace
}  // namespace outrider::testing
