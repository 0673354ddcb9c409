// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/session_errors.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(SessionErrorsTest, OnlyWhatIsSaidToBeOutgrownIs) {
  EXPECT_TRUE(IsOutgrown(OutgrownError(100, 64)));
  EXPECT_FALSE(IsOutgrown(absl::FailedPreconditionError("")));
  EXPECT_FALSE(IsOutgrown(absl::OkStatus()));
}

TEST(SessionErrorsTest, OnlyWhatIsSaidToBePoisonIs) {
  EXPECT_TRUE(IsPoison(PoisonError()));
  EXPECT_FALSE(IsPoison(absl::InternalError("")));
  EXPECT_FALSE(IsPoison(OutgrownError(100, 64)));
}

}  // namespace
}  // namespace outrider
