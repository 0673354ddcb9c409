// SPDX-License-Identifier: Apache-2.0
#include "bench/load/baselines.h"

#include <gtest/gtest.h>

namespace outrider::bench {
namespace {

// Rounds of two tokens; K = 0 takes a pass for each of them.
Measurement At(int users, int k, double token_ms) {
  return {.point = {.cell = {.load = {.concurrency = users}, .k = k}},
          .mean_in_flight = static_cast<double>(users),
          .token_ms = {.mean = token_ms},
          .tokens_per_second = 1e3 * users / token_ms,
          .tokens_per_round = 2,
          .split = {.verify_ms = 2 * token_ms}};
}

TEST(BaselinesTest, AnyKIsComparedWithPlainDecodingOfItsLoad) {
  const Measurement plain = At(8, 0, 30);
  Measurement measured = At(8, 4, 20);
  NotePlainNetwork({.plain = &plain}, measured);
  EXPECT_DOUBLE_EQ(measured.network_speedup(), 1.5);
  NotePlainNetwork({.plain = &plain}, measured = At(8, 0, 20));
  EXPECT_EQ(measured.network_speedup(), 1);
}

TEST(BaselinesTest, AKWithoutPlainDecodingIsNotItsOwnBaseline) {
  for (const int users : {1, 8}) {
    Measurement measured = At(users, 4, 20);
    NotePlainNetwork({}, measured);
    NotePlainVerifier({}, measured);
    EXPECT_EQ(measured.network_speedup(), 0);
    EXPECT_EQ(measured.speedup(), 0);
  }
}

TEST(BaselinesTest, ARunningVerifiersPlainTimeIsThatOfOneUser) {
  Measurement alone = At(1, 0, 10);
  NotePlainVerifier({}, alone);
  EXPECT_EQ(alone.plain_token_ms, 10);
  for (const int k : {0, 4}) {
    // Its passes are shared: they take longer than one user's.
    const Measurement plain = At(8, 0, 30);
    Measurement crowd = At(8, k, 30);
    NotePlainVerifier({.plain = &plain, .alone = &alone}, crowd);
    EXPECT_EQ(crowd.plain_token_ms, 10);
    NotePlainVerifier({.plain = &plain}, crowd = At(8, k, 30));
    EXPECT_EQ(crowd.speedup(), 0);
  }
}

}  // namespace
}  // namespace outrider::bench
