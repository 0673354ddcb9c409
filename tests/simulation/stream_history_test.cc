// SPDX-License-Identifier: Apache-2.0
// Histories that no sequential execution explains, each of which is found.
#include "tests/simulation/stream_history.h"

#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

class StreamHistoryTest : public ::testing::Test {
 protected:
  // A session that has written and sent 1, 2 and 3.
  StreamHistoryTest() {
    history_.Begins(/*seed=*/7, {});
    Write(0, 0, {1, 2, 3});
  }
  void Write(int session, int first_index, std::vector<TokenId> tokens) {
    history_.Committed(session, first_index, tokens);
    history_.Received(session, first_index, tokens);
  }
  bool IsExplained(bool is_text_promised = true) const {
    return history_.Problem(is_text_promised).empty();
  }

  StreamHistory history_;
};

TEST_F(StreamHistoryTest, AResumeAfterWhatWasReceivedIsExplained) {
  history_.Committed(0, 3, std::vector<TokenId>{4, 5});
  history_.Begins(7, std::vector<TokenId>{1, 2, 3});
  Write(1, 3, {4});
  EXPECT_TRUE(IsExplained());
}

TEST_F(StreamHistoryTest, ATokenThatComesTwiceIsFound) {
  Write(0, 2, {3});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, ATokenThatIsLeftOutIsFound) {
  Write(0, 4, {5});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, ATokenThatNobodyHasWrittenIsFound) {
  history_.Received(0, 3, std::vector<TokenId>{4});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, ASessionThatIsFollowedAndSendsOnIsFound) {
  history_.Begins(7, std::vector<TokenId>{1, 2, 3});
  Write(0, 3, {4});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, AResumeThatBeginsWithAnotherTextIsFound) {
  history_.Begins(7, std::vector<TokenId>{1, 2});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, AResumeWithAnotherSeedIsFound) {
  history_.Begins(8, std::vector<TokenId>{1, 2, 3});
  EXPECT_FALSE(IsExplained());
}

TEST_F(StreamHistoryTest, AForkThatNobodyReceivedCountsWhereTheTextIsPromised) {
  history_.Committed(0, 3, std::vector<TokenId>{4});
  history_.Begins(7, std::vector<TokenId>{1, 2, 3});
  Write(1, 3, {5});
  EXPECT_FALSE(IsExplained(/*is_text_promised=*/true));
  EXPECT_TRUE(IsExplained(/*is_text_promised=*/false));
}

}  // namespace
}  // namespace outrider::testing
