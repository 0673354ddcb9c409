// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the parser says of a command line; empty where it can be.
std::string Parse(const std::string& words, CoordinatorFlags& flags) {
  CLI::App app;
  AddCoordinatorFlags(app, flags);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

CoordinatorFlags FlagsOf(const std::string& words) {
  CoordinatorFlags flags;
  EXPECT_EQ(Parse("--verifier 127.0.0.1:7002 " + words, flags), "");
  return flags;
}

std::string UsageError(const std::string& words) {
  CoordinatorFlags flags;
  return Parse(words, flags);
}

TEST(CoordinatorFlagsTest, SayWhichNodesThereAreAndHowLongTheyMayTake) {
  const NodePoolOptions nodes = NodeOptionsOf(FlagsOf(
      "--verifier 127.0.0.1:7003 --drafter 127.0.0.1:7001 --resolve-seconds 5 "
      "--draft-timeout-ms 100 --verify-timeout-ms 200 --max-waiting 3"));
  EXPECT_THAT(nodes.verifiers, ElementsAre("127.0.0.1:7002", "127.0.0.1:7003"));
  EXPECT_THAT(nodes.drafters, ElementsAre("127.0.0.1:7001"));
  EXPECT_EQ(nodes.resolve_period, seconds(5));
  EXPECT_EQ(nodes.draft_timeout, milliseconds(100));
  EXPECT_EQ(nodes.verify_timeout, milliseconds(200));
  EXPECT_EQ(nodes.max_waiting, 3);
}

TEST(CoordinatorFlagsTest, SayHowStreamsAreServed) {
  const CoordinatorFlags flags = FlagsOf(
      "--slow-client-seconds 7 --max-sessions 9 --max-connection-age-seconds "
      "60");
  EXPECT_EQ(ServiceOptionsOf(flags).client_patience, seconds(7));
  EXPECT_EQ(ServiceOptionsOf(flags).max_sessions, 9);
  EXPECT_EQ(RpcOptionsOf(flags).max_connection_age, seconds(60));
  EXPECT_EQ(RpcOptionsOf(flags).max_calls, 18);
}

TEST(CoordinatorFlagsTest, AFixedKAndAutoAreBothTaken) {
  const auto fixed = ServiceOptionsOf(FlagsOf("-k 6"));
  EXPECT_EQ(fixed.default_draft_tokens, 6);
  EXPECT_EQ(fixed.default_draft_length_mode, DraftLengthMode::kFixed);
  EXPECT_EQ(ServiceOptionsOf(FlagsOf("-k auto")).default_draft_length_mode,
            DraftLengthMode::kAuto);
}

TEST(CoordinatorFlagsTest, AReplyFormatIsNamedOrChosenByTheRule) {
  EXPECT_EQ(
      ServiceOptionsOf(FlagsOf("--reply-format sparse")).default_reply_format,
      ReplyFormat::kSparse);
  EXPECT_EQ(
      ServiceOptionsOf(FlagsOf("--reply-format auto")).default_reply_format,
      std::nullopt);
  EXPECT_THAT(UsageError("--verifier 127.0.0.1:1 --reply-format full-bfloat16"),
              HasSubstr("--reply-format"));
  EXPECT_EQ(UsageError("--verifier 127.0.0.1:1 --schedule 2"),
            "--schedule: needs one of ahead, auto, predraft, sequential, not "
            "\"2\"");
  EXPECT_EQ(ServiceOptionsOf(FlagsOf("--schedule predraft")).default_schedule,
            Schedule::kPredraft);
}

TEST(CoordinatorFlagsTest, ANodeThatNobodyCouldCallIsRefusedByItsFlag) {
  EXPECT_THAT(UsageError("--verifier there"), HasSubstr("--verifier"));
  EXPECT_THAT(UsageError("--verifier 127.0.0.1:1 --drafter there"),
              HasSubstr("--drafter"));
  // Prompts off loopback are not sent as plain text unasked.
  EXPECT_THAT(UsageError("--verifier 192.0.2.1:7002"), HasSubstr("--verifier"));
  CoordinatorFlags flags;
  EXPECT_EQ(Parse("--verifier 192.0.2.1:7002 --insecure", flags), "");
  EXPECT_THAT(UsageError(""), HasSubstr("--verifier"));
}

TEST(CoordinatorFlagsTest, TheModelIsNamedAsItsDirectory) {
  for (const char* const directory :
       {"demo-target", "models/demo-target", "/models/demo-target//"}) {
    CoordinatorFlags flags;
    flags.tokenizer = directory;
    EXPECT_EQ(ModelNameOf(flags), "demo-target") << directory;
  }
  EXPECT_EQ(ModelNameOf({}), "unknown");
}

}  // namespace
}  // namespace outrider
