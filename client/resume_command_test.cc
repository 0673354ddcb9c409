// SPDX-License-Identifier: Apache-2.0
#include "client/resume_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error_reason.h"

namespace outrider::client {
namespace {

using ::testing::StartsWith;

const ResumeFlags kFlags = {
    .seed = "7", .model = "ab:float32:avx2", .tokens = "1 2"};

std::string CommandFor(const std::vector<std::string>& words) {
  return ResumeCommand(words, kFlags);
}

TEST(ResumeCommandTest, ItIsTheCommandLineWithWhatAResumeNeeds) {
  EXPECT_EQ(CommandFor({"bin/outrider", "generate", "-k", "4", "it's {text}"}),
            "bin/outrider generate --seed 7 --resume-model ab:float32:avx2 "
            "--resume-tokens '1 2' -k 4 'it'\\''s {text}'");
}

TEST(ResumeCommandTest, ASecondResumeReplacesWhatTheFirstHad) {
  EXPECT_EQ(CommandFor({"outrider", "generate", "--seed", "7",
                        "--resume-tokens=1", "--resume-model", "m", "text"}),
            CommandFor({"outrider", "generate", "text"}));
}

TEST(ResumeCommandTest, TheSaltInUseTakesThePlaceOfTheRequests) {
  ResumeFlags flags = kFlags;
  flags.salt = "a secret";
  EXPECT_EQ(ResumeCommand({"outrider", "generate", "--cache-salt", "s", "text"},
                          flags),
            "outrider generate --seed 7 --resume-model ab:float32:avx2 "
            "--resume-tokens '1 2' --cache-salt 'a secret' text");
}

TEST(ResumeCommandTest, AfterTwoDashesNothingIsAFlag) {
  EXPECT_EQ(CommandFor({"outrider", "generate", "--", "--seed"}),
            "outrider generate --seed 7 --resume-model ab:float32:avx2 "
            "--resume-tokens '1 2' -- --seed");
}

// Linux runs no program that has an argument of 128 KiB.
TEST(ResumeCommandTest, MoreTokensThanAnArgumentCanHaveAreNone) {
  ResumeFlags flags = kFlags;
  flags.tokens = std::string(128 * 1024 - 1, '1');
  const std::vector<std::string> words = {"outrider", "generate", "--", "text"};
  EXPECT_EQ(ResumeCommand(words, flags),
            "outrider generate --seed 7 --resume-model ab:float32:avx2 "
            "--resume-tokens " +
                flags.tokens + " -- text");
  flags.tokens += " 1";
  EXPECT_EQ(ResumeCommand(words, flags),
            "outrider generate --seed 7 --resume-model ab:float32:avx2 "
            "--resume-tokens @/dev/fd/3 -- text 3<<< '" +
                flags.tokens + "'");
}

TEST(ResumeCommandTest, BashRunsACommandOfManyTokens) {
  const std::string folder = ::testing::TempDir() + "/resume_command_";
  // Its sixth word is what --resume-tokens is set to.
  std::ofstream(folder + "program") << "cat \"${6#@}\"\n";
  ResumeFlags flags = kFlags;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&flags.tokens, " ", i);
  std::ofstream(folder + "line")
      << ResumeCommand({"bash", folder + "program", "text"}, flags);
  const std::string run =
      absl::StrCat("bash ", folder, "line > ", folder, "seen");
  ASSERT_EQ(std::system(run.c_str()), 0);
  std::stringstream seen;
  seen << std::ifstream(folder + "seen").rdbuf();
  EXPECT_EQ(seen.str(), flags.tokens + "\n");
}

TEST(ResumeCommandTest, OnlyWhatMaySucceedIsResumed) {
  GenerationRequest rest = {.prompt = "text"};
  rest.seed = 7;
  rest.model = ModelIdentity{.weights_hash = "ab"};
  EXPECT_FALSE(CanResume(rest, absl::UnavailableError("")));  // no tokens
  rest.delivered = TokenSeq{1, 2};
  EXPECT_TRUE(CanResume(rest, absl::UnavailableError("")));
  EXPECT_TRUE(CanResume(rest, absl::DeadlineExceededError("")));
  EXPECT_FALSE(CanResume(rest, absl::InvalidArgumentError("")));
  // The model failed on it once; and nodes die of it.
  EXPECT_TRUE(CanResume(rest, absl::InternalError("")));
  EXPECT_FALSE(
      CanResume(rest, WithErrorReason(absl::InternalError(""), kPoisonReason)));
  EXPECT_EQ(ToResumeFlags(rest).tokens, "1 2");
  EXPECT_THAT(ToResumeFlags(rest).model, StartsWith("ab:"));
}

TEST(ResumeCommandTest, AStreamIsResumedWhereItsModelIsServedAgain) {
  GenerationRequest rest = {.prompt = "text"};
  rest.seed = 7;
  rest.model = ModelIdentity{.weights_hash = "old"};
  rest.delivered = TokenSeq{1, 2};
  EXPECT_TRUE(CanResume(rest, absl::AbortedError("another model")));
  EXPECT_TRUE(CanResume(rest, absl::FailedPreconditionError("not old")));
  EXPECT_THAT(ToResumeFlags(rest).model, StartsWith("old:"));
}

}  // namespace
}  // namespace outrider::client
