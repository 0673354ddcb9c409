// SPDX-License-Identifier: Apache-2.0
#include "core/base/last_words.h"

#include <string>

#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

std::string LastWords(LogFormat format) {
  SetLogFormat(format);
  ::testing::internal::CaptureStderr();
  SayWhyItEnds("outrider-x", "no \"model\"");
  SetLogFormat(LogFormat::kText);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LastWordsTest, AreForPeople) {
  EXPECT_EQ(LastWords(LogFormat::kText), "outrider-x: no \"model\"\n");
}

TEST(LastWordsTest, AreALineOfTheLogWhereThatIsJson) {
  const std::string line = LastWords(LogFormat::kJson);
  EXPECT_THAT(line, StartsWith("{\"time\":"));
  EXPECT_THAT(line, EndsWith("\"level\":\"error\",\"message\":\"no "
                             "\\\"model\\\"\",\"program\":\"outrider-x\"}\n"));
}

}  // namespace
}  // namespace outrider
