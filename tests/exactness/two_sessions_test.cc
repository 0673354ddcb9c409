// SPDX-License-Identifier: Apache-2.0
// Two sessions in one pass: neither sees anything of the other, down to the
// last branch of chance.
#include "tests/exactness/two_sessions.h"

#include <iostream>

#include "gtest/gtest.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::two_sessions {
namespace {

constexpr int kLength = 2;

class TwoSessionsTest : public ::testing::TestWithParam<ReplyFormat> {
 protected:
  static TwoSessions ExpectProductOfPlainLaws(const TwoSessionsConfig& config) {
    const ToyModel model(3, DrafterKind::kCorrelated);
    const TwoSessions sessions = EnumerateTwoSessions(config, model, kLength);
    const double difference =
        DifferenceFromPlain(sessions, config, model, kLength);
    std::cout << sessions.num_leaves << " leaves, difference " << difference
              << "\n";
    EXPECT_LE(difference, kTolerance);
    EXPECT_EQ(sessions.problem, "");
    EXPECT_EQ(sessions.num_misses, 0);
    // A pass that both share for nearly every leaf.
    EXPECT_GE(sessions.num_shared_passes, sessions.num_leaves * 9 / 10);
    return sessions;
  }
};

TEST_P(TwoSessionsTest, HaveTheJointLawOfTwoPlainDecoders) {
  ExpectProductOfPlainLaws({.reply_format = GetParam()});
}

TEST_P(TwoSessionsTest, HaveItAfterPromptsThatWereRunInChunks) {
  ExpectProductOfPlainLaws({.reply_format = GetParam(), .prompt_length = 40});
}

// They share two full blocks of 40 tokens, on either node.
TEST_P(TwoSessionsTest, HaveItWhereOneBeginsWithTheBlocksOfTheOther) {
  const TwoSessions sessions =
      ExpectProductOfPlainLaws({.reply_format = GetParam(),
                                .prompt_length = 40,
                                .is_second_late = true,
                                .salts = {"s", "s"}});
  EXPECT_GE(sessions.num_reused, sessions.num_leaves * 2 * 32 * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Formats, TwoSessionsTest,
                         ::testing::Values(ReplyFormat::kFull,
                                           ReplyFormat::kTokens));

}  // namespace
}  // namespace outrider::testing::two_sessions
