// SPDX-License-Identifier: Apache-2.0
#include "core/model/check_extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace outrider {
namespace {

using ::testing::HasSubstr;

const ModelInfo kModel = {.vocab_size = 10, .context_length = 20};
const std::vector<KvBlockId> kBlocks = {0, 1};
const TokenSeq kTokens = {1, 2, 3};

absl::Status Check(const Extension& extension) {
  return CheckExtension(extension, kModel);
}

TEST(CheckExtensionTest, TakesWhatFitsToTheLastPosition) {
  EXPECT_TRUE(Check({.blocks = kBlocks,
                     .cached_length = 17,
                     .tokens = kTokens,
                     .num_rows = 3})
                  .ok());
  EXPECT_TRUE(Check({.blocks = absl::MakeConstSpan(kBlocks).first(1),
                     .cached_length = 13,
                     .tokens = kTokens})
                  .ok());
}

TEST(CheckExtensionTest, RefusesWhatNoModelCanRun) {
  const TokenSeq outside = {1, 10};
  const TokenSeq negative = {-1};
  const struct {
    Extension extension;
    std::string message;
  } cases[] = {
      {{.blocks = kBlocks, .tokens = {}}, "0 tokens"},
      {{.blocks = kBlocks, .tokens = kTokens, .num_rows = 4}, "4 rows of 3"},
      {{.blocks = kBlocks, .tokens = kTokens, .num_rows = -1}, "-1 rows"},
      {{.blocks = kBlocks, .cached_length = -1, .tokens = kTokens}, "after -1"},
      {{.blocks = kBlocks, .cached_length = 18, .tokens = kTokens},
       "21 tokens are beyond the context of 20"},
      {{.blocks = kBlocks,
        .cached_length = std::numeric_limits<int>::max(),
        .tokens = kTokens},
       "beyond the context"},
      {{.blocks = absl::MakeConstSpan(kBlocks).first(1),
        .cached_length = 14,
        .tokens = kTokens},
       "17 tokens have no room in 1 KV blocks"},
      {{.blocks = kBlocks, .tokens = outside}, "token 10"},
      {{.blocks = kBlocks, .tokens = negative}, "token -1"},
  };
  for (const auto& [extension, message] : cases) {
    const absl::Status status = Check(extension);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace outrider
