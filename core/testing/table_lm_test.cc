// SPDX-License-Identifier: Apache-2.0
#include "core/testing/table_lm.h"

#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

using ::testing::ElementsAre;

// The row after a context: its length, then its last token.
std::vector<float> Describe(absl::Span<const TokenId> context) {
  return {static_cast<float>(context.size()),
          static_cast<float>(context.back())};
}

const SessionId kSession = {.bytes = {1}};
const SessionId kOther = {.bytes = {2}};

TableLm NewModel() {
  return TableLm({.table = Describe, .vocab_size = 2, .context_length = 4});
}

TEST(TableLmTest, GivesTheLastRowsOfTheCutAndAppendedContext) {
  TableLm model = NewModel();
  const TokenSeq first = {0, 1, 0};
  ASSERT_THAT(model.Extend({{.session = kSession, .tokens = first}})[0],
              IsOk());
  const TokenSeq second = {1, 1};
  const auto rows = model.Extend({{.session = kSession,
                                   .keep_length = 2,
                                   .tokens = second,
                                   .num_rows = 2}})[0];
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->Row(0), ElementsAre(3, 1));
  EXPECT_THAT(rows->Row(1), ElementsAre(4, 1));
  EXPECT_THAT(model.Cache(kSession), ElementsAre(0, 1, 1, 1));
}

TEST(TableLmTest, RefusesWhatACacheCanNotDoAndLeavesItAsItWas) {
  TableLm model = NewModel();
  const TokenSeq tokens = {0, 1};
  const TokenSeq unknown = {2};
  const TokenSeq many = {0, 0, 0, 0, 0};
  ASSERT_THAT(model.Extend({{.session = kSession, .tokens = tokens}})[0],
              IsOk());
  const auto results = model.Extend({
      {.session = kSession, .keep_length = 3, .tokens = tokens},
      {.session = kSession, .keep_length = 0, .tokens = unknown},
      {.session = kSession, .keep_length = 0, .tokens = many},
      {.session = kSession, .keep_length = 0, .tokens = {}},
      {.session = kOther, .tokens = tokens, .num_rows = 1},
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(results[i], StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(results[4], IsOk());
  EXPECT_THAT(model.Cache(kSession), ElementsAre(0, 1));
}

TEST(TableLmTest, ReleaseForgetsOneSession) {
  TableLm model = NewModel();
  const TokenSeq tokens = {0};
  for (const SessionId& session : {kSession, kOther}) {
    ASSERT_THAT(model.Extend({{.session = session, .tokens = tokens}})[0],
                IsOk());
  }
  model.Release(kSession);
  EXPECT_TRUE(model.Cache(kSession).empty());
  EXPECT_EQ(model.num_sessions(), 1);
}

}  // namespace
}  // namespace outrider::testing
