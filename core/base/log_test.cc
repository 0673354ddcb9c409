// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <string>

#include "core/base/quiet_log.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr char kTime[] = "2026-11-21T02:49:40.123Z";

TEST(LogTest, TextHasTimeLevelMessageAndFieldsOnOneLine) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kWarning, kTime,
                          "a node\nis slow", {{"request_id", "4f1c"}}),
            "2026-11-21T02:49:40.123Z W a node is slow request_id=4f1c\n");
}

TEST(LogTest, AThreadThatIsToldToBeQuietIsForAsLong) {
  ::testing::internal::CaptureStderr();
  {
    const QuietLog quiet;
    OUTRIDER_LOG(kInfo) << "unheard";
  }
  OUTRIDER_LOG(kInfo) << "heard";
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines.find("unheard"), std::string::npos);
  EXPECT_NE(lines.find("heard"), std::string::npos);
}

TEST(LogTest, JsonIsOneObjectALine) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kError, kTime, "gone",
                          {{"request_id", "4f1c"}, {"code", "INTERNAL"}}),
            "{\"time\":\"2026-11-21T02:49:40.123Z\",\"level\":\"error\","
            "\"message\":\"gone\",\"request_id\":\"4f1c\","
            "\"code\":\"INTERNAL\"}\n");
}

TEST(LogTest, NumbersAreNumbersInJson) {
  const LogFields fields = {{"rounds", 1234567},
                            {"rate", 0.25},
                            {"by_position", std::vector<double>{1, 0.5}},
                            {"id", "17"}};
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kInfo, "t", "m", fields),
            "{\"time\":\"t\",\"level\":\"info\",\"message\":\"m\","
            "\"rounds\":1234567,\"rate\":0.25,\"by_position\":[1,0.5],"
            "\"id\":\"17\"}\n");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kInfo, "t", "m", fields),
            "t I m rounds=1234567 rate=0.25 by_position=1,0.5 id=17\n");
}

TEST(LogTest, JsonEscapesWhatWouldEndAStringOrIsNoUtf8) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kInfo, "t",
                          "\"\\\n\x01\xff", {}),
            "{\"time\":\"t\",\"level\":\"info\","
            "\"message\":\"\\\"\\\\\\u000a\\u0001\\u00ff\"}\n");
}

}  // namespace
}  // namespace outrider
