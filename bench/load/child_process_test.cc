// SPDX-License-Identifier: Apache-2.0
#include "bench/load/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

std::unique_ptr<ChildProcess> StartScript(const std::string& script) {
  return ChildProcess::Start({"/bin/sh", "-c", script}).value();
}

TEST(ChildProcessTest, OneThatTakesTooLongIsSaidToHaveTimedOut) {
  const auto program = StartScript("echo loading >&2; echo begun; sleep 1000");
  EXPECT_EQ(program->ReadLine(std::chrono::minutes(1)).value(), "begun");
  EXPECT_THAT(program->ReadLine(std::chrono::milliseconds(1)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("sh timed out: loading")));
}

TEST(ChildProcessTest, OneThatEndsIsNotWaitedFor) {
  const auto program = StartScript("echo no such model >&2; exit 1");
  EXPECT_THAT(program->ListenAddress(std::chrono::hours(1)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("sh did not run: no such model")));
}

}  // namespace
}  // namespace outrider::bench
