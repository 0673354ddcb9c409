// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What a program with these flags has of this command line, or says of it.
template <typename Options>
std::string Parse(const std::string& words, Options& options) {
  CLI::App app;
  AddDraftOptionFlags(app, options);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(DraftFlagsTest, AServersFlagsChangeItsDefaults) {
  DraftOptions options = kGenerationDraftOptions;
  EXPECT_EQ(
      Parse("--draft-support-size 0 --min-draft-probability 0.25", options),
      "");
  DraftOptions expected = kGenerationDraftOptions;
  expected.support_size = 0;
  expected.min_draft_probability = 0.25;
  EXPECT_EQ(options, expected);
}

TEST(DraftFlagsTest, ARequestLeavesToTheCoordinatorWhatItDoesNotSay) {
  DraftOverrides options;
  EXPECT_EQ(Parse("--draft-support-mass 0.5", options), "");
  EXPECT_EQ(options, DraftOverrides{.support_mass = 0.5});
}

TEST(DraftFlagsTest, RangesAreThoseOfTheOptions) {
  DraftOptions own;
  DraftOverrides request;
  EXPECT_THAT(Parse("--draft-support-mass 0", own),
              HasSubstr("--draft-support-mass"));
  EXPECT_THAT(Parse("--draft-support-mass 0", request),
              HasSubstr("--draft-support-mass"));
  EXPECT_THAT(Parse("--min-draft-probability 1", request),
              HasSubstr("--min-draft-probability"));
  EXPECT_THAT(Parse("--draft-support-size 1025", own),
              HasSubstr("--draft-support-size"));
  EXPECT_EQ(Parse("--draft-support-size 128256", request), "");
  // Whole rows are asked for by the vocabulary's size there.
  EXPECT_THAT(Parse("--draft-support-size 0", request),
              HasSubstr("--draft-support-size"));
}

TEST(DraftFlagsTest, HelpSaysWhoseDefaultHolds) {
  CLI::App server;
  DraftOptions own = kGenerationDraftOptions;
  AddDraftOptionFlags(server, own);
  EXPECT_THAT(server.help(), AllOf(HasSubstr("0.98"), HasSubstr("1024")));
  CLI::App client;
  DraftOverrides request;
  AddDraftOptionFlags(client, request);
  EXPECT_THAT(client.help(), HasSubstr("the coordinator's"));
}

}  // namespace
}  // namespace outrider
