// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(CancellationTest, TellsEveryCallInFlightOnce) {
  Cancellation cancellation;
  int stops = 0;
  cancellation.OnCancel([&] { ++stops; });
  cancellation.OnCancel([&] { ++stops; });
  EXPECT_FALSE(cancellation.cancelled());
  cancellation.Cancel();
  cancellation.Cancel();
  EXPECT_EQ(stops, 2);
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(CancellationTest, TellsALateCallAtOnceAndOnlyOnce) {
  Cancellation cancellation;
  cancellation.Cancel();
  int stops = 0;
  cancellation.OnCancel([&] { ++stops; });
  EXPECT_EQ(stops, 1);
  cancellation.Cancel();
  EXPECT_EQ(stops, 1);
}

TEST(CancellationTest, ForgetsCallsThatHaveEnded) {
  Cancellation cancellation;
  int stops = 0;
  const uint64_t id = cancellation.OnCancel([&] { ++stops; });
  cancellation.Forget(id);
  cancellation.Forget(id);
  cancellation.Cancel();
  EXPECT_EQ(stops, 0);
}

}  // namespace
}  // namespace outrider
