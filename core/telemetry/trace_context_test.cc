// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/trace_context.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr char kGood[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, AChildKeepsTraceAndFlagsAndHasASpanOfItsOwn) {
  const auto parent = TraceContext::Parse(kGood);
  ASSERT_TRUE(parent.has_value());
  EXPECT_EQ(parent->ToHeader(), kGood);
  const TraceContext child = parent->Child();
  EXPECT_EQ(child.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(child.flags, "01");
  EXPECT_NE(child.span_id, parent->span_id);
  EXPECT_TRUE(TraceContext::Parse(child.ToHeader()).has_value());
}

TEST(TraceContextTest, WhatBreaksTheStandardIsNoTrace) {
  for (const char* header :
       {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0\n",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01"}) {
    EXPECT_FALSE(TraceContext::Parse(header).has_value()) << header;
  }
}

TEST(TraceContextTest, ALaterVersionMayAppendFields) {
  EXPECT_TRUE(
      TraceContext::Parse(
          "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
          .has_value());
}

TEST(RequestIdTest, KeepsAPlainIdAndReplacesWhatCouldForgeALogLine) {
  EXPECT_EQ(RequestIdFrom("job-7.retry_2"), "job-7.retry_2");
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a\nb"),
        std::string("a\"b"), std::string(65, 'a')}) {
    const std::string id = RequestIdFrom(bad);
    EXPECT_FALSE(IsRequestId(bad));
    EXPECT_TRUE(IsRequestId(id));
    EXPECT_EQ(id.size(), 16u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(id, RequestIdFrom(bad));
  }
}

}  // namespace
}  // namespace outrider
