// SPDX-License-Identifier: Apache-2.0
#include "client/generate_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace outrider::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The flags, or CLI11's words.
absl::StatusOr<GenerateFlags> Parse(std::vector<std::string> arguments) {
  CLI::App app;
  GenerateFlags flags;
  AddGenerateFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return flags;
}

std::string UsageError(const std::vector<std::string>& arguments,
                       const std::string& standard_input = "") {
  const absl::StatusOr<GenerateFlags> flags = Parse(arguments);
  if (!flags.ok()) return std::string(flags.status().message());
  std::istringstream in(standard_input);
  return std::string(ToRequest(*flags, in).status().message());
}

GenerationRequest RequestOf(const std::vector<std::string>& arguments,
                            const std::string& standard_input = "") {
  const absl::StatusOr<GenerateFlags> flags = Parse(arguments);
  EXPECT_TRUE(flags.ok()) << flags.status();
  std::istringstream in(standard_input);
  const auto request = ToRequest(*flags, in);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.value_or(GenerationRequest{});
}

TEST(GenerateFlagsTest, ACoordinatorMayBeRepeated) {
  const auto flags = Parse({"--coordinator", "127.0.0.1:1", "--coordinator",
                            "127.0.0.1:2", "prompt"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->target.coordinator, "127.0.0.1:1");
  EXPECT_THAT(flags->target.others, ElementsAre("127.0.0.1:2"));
  EXPECT_EQ(Parse({"prompt"})->target.coordinator, "127.0.0.1:7000");
}

TEST(GenerateFlagsTest, BecomeARequest) {
  const GenerationRequest request = RequestOf({"-k",
                                               "4",
                                               "--temperature",
                                               "0.5",
                                               "--top-p",
                                               "0.9",
                                               "--top-k",
                                               "40",
                                               "--seed",
                                               "18446744073709551615",
                                               "--max-tokens",
                                               "7",
                                               "--stop",
                                               "a",
                                               "--stop",
                                               "b c",
                                               "--stop-token-ids",
                                               "3,5",
                                               "--ignore-eos",
                                               "--draft-support-size",
                                               "64",
                                               "--draft-support-mass",
                                               "0.5",
                                               "--min-draft-probability",
                                               "0.25",
                                               "--no-prompt-lookup",
                                               "--reply-format",
                                               "sparse",
                                               "--acceptance-rule",
                                               "coupled",
                                               "--lossy-lenience",
                                               "0.5",
                                               "--cache-salt",
                                               "tenant",
                                               "text"});
  EXPECT_EQ(std::get<std::string>(request.prompt), "text");
  EXPECT_EQ(request.num_speculative_tokens, 4);
  EXPECT_EQ(request.temperature, 0.5);
  EXPECT_EQ(request.top_p, 0.9);
  EXPECT_EQ(request.top_k, 40);
  EXPECT_EQ(request.seed, ~uint64_t{0});
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_THAT(request.stop_strings, ElementsAre("a", "b c"));
  EXPECT_THAT(request.stop_token_ids, ElementsAre(3, 5));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.draft_options.support_size, 64);
  EXPECT_EQ(request.draft_options.support_mass, 0.5);
  EXPECT_EQ(request.draft_options.min_draft_probability, 0.25);
  EXPECT_EQ(request.prompt_lookup, false);
  EXPECT_EQ(request.cache_salt, "tenant");
  EXPECT_EQ(request.reply_format, ReplyFormat::kSparse);
  EXPECT_EQ(request.acceptance_rule, RuleKind::kCoupled);
  EXPECT_EQ(request.lossy_lenience, 0.5);
}

TEST(GenerateFlagsTest, AWordOfAFlagIsANameAndNoNumber) {
  EXPECT_EQ(RequestOf({"--schedule", "predraft", "text"}).schedule,
            Schedule::kPredraft);
  EXPECT_EQ(UsageError({"--schedule", "foo", "text"}),
            "--schedule: needs one of ahead, auto, predraft, sequential, not "
            "\"foo\"");
  EXPECT_THAT(UsageError({"--schedule", "2", "text"}), HasSubstr("not \"2\""));
  EXPECT_THAT(UsageError({"--reply-format", "1", "text"}),
              HasSubstr("full, full-bfloat16, sparse, tokens, not \"1\""));
  EXPECT_THAT(
      UsageError({"--json", "--logprobs", "1", "--logprobs-mode", "0", "text"}),
      HasSubstr("processed, raw, not \"0\""));
  EXPECT_THAT(UsageError({"--acceptance-rule", "lenient", "text"}),
              HasSubstr("--acceptance-rule: needs one of greedy, "));
}

TEST(GenerateFlagsTest, GreedyIsRejectionAtTemperatureZero) {
  EXPECT_EQ(
      RequestOf({"--acceptance-rule", "greedy", "--temperature", "0", "text"})
          .acceptance_rule,
      RuleKind::kRejection);
  EXPECT_EQ(RequestOf({"--acceptance-rule", "greedy", "--temperature", "0",
                       "--lossy-lenience", "1", "text"})
                .acceptance_rule,
            RuleKind::kRejection);
  EXPECT_EQ(RequestOf({"text"}).acceptance_rule, std::nullopt);
}

TEST(GenerateFlagsTest, ProcessingBecomesPartOfTheRequest) {
  const GenerationRequest request =
      RequestOf({"--min-p", "0.1", "--repetition-penalty", "1.2",
                 "--presence-penalty", "-0.3", "--frequency-penalty", "0.4",
                 "--logit-bias", "9=-5", "--logit-bias", "3=2.5", "--json",
                 "--logprobs", "5", "--logprobs-mode", "processed", "text"});
  EXPECT_EQ(request.min_p, 0.1);
  EXPECT_EQ(request.repetition_penalty, 1.2);
  EXPECT_EQ(request.presence_penalty, -0.3);
  EXPECT_EQ(request.frequency_penalty, 0.4);
  EXPECT_THAT(request.logit_bias,
              ElementsAre(LogitBias{9, -5}, LogitBias{3, 2.5}));
  EXPECT_EQ(request.logprobs, 5u);
  EXPECT_EQ(request.logprobs_mode, LogprobsMode::kProcessed);
}

TEST(GenerateFlagsTest, ProcessingThatCannotBeIsRefusedByName) {
  for (const std::string value : {"0", "nan", "1.01", "-1"}) {
    EXPECT_THAT(UsageError({"a", "--lossy-lenience", value}),
                HasSubstr("--lossy-lenience"));
  }
  for (const std::string value : {"0", "nan", "101", "-1"}) {
    EXPECT_THAT(UsageError({"a", "--repetition-penalty", value}),
                HasSubstr("--repetition-penalty: needs a number"));
  }
  for (const std::string value : {"2.1", "-2.1", "nan", "inf"}) {
    EXPECT_THAT(UsageError({"a", "--presence-penalty", value}),
                HasSubstr("--presence-penalty"));
    EXPECT_THAT(UsageError({"a", "--frequency-penalty", value}),
                HasSubstr("--frequency-penalty"));
  }
  EXPECT_THAT(UsageError({"a", "--min-p", "1.5"}), HasSubstr("--min-p"));
  for (const std::string value :
       {"7", "=", "x=1", "-1=1", "7=x", "7=nan", "7=inf", "7=100.5"}) {
    EXPECT_THAT(UsageError({"a", "--logit-bias", value}),
                HasSubstr("not \"" + value + "\""));
  }
  EXPECT_THAT(UsageError({"a", "--json", "--logprobs", "21"}),
              HasSubstr("--logprobs"));
  EXPECT_THAT(UsageError({"a", "--json", "--logprobs-mode", "raw"}),
              HasSubstr("needs --logprobs"));
  EXPECT_THAT(UsageError({"a", "--logprobs", "3"}), HasSubstr("needs --json"));
  EXPECT_THAT(UsageError({"a", "--acceptance-rule", "greedy"}),
              HasSubstr("needs --temperature 0"));
  EXPECT_THAT(UsageError({"a", "--acceptance-rule", "greedy", "--temperature",
                          "0", "--lossy-lenience", "0.5"}),
              HasSubstr("leave one of the two out"));
}

TEST(GenerateFlagsTest, LeaveTheRestToTheCoordinator) {
  const GenerationRequest request = RequestOf({"text"});
  EXPECT_FALSE(request.num_speculative_tokens.has_value());
  EXPECT_FALSE(request.temperature.has_value());
  EXPECT_FALSE(request.seed.has_value());
  EXPECT_FALSE(request.delivered.has_value());
}

TEST(GenerateFlagsTest, APromptComesFromAFileOrFromStandardInput) {
  const std::string path = ::testing::TempDir() + "/prompt.txt";
  std::ofstream(path) << "line\nand more";
  EXPECT_EQ(std::get<std::string>(RequestOf({"--prompt-file", path}).prompt),
            "line\nand more");
  EXPECT_EQ(
      std::get<std::string>(RequestOf({"--prompt-file", "-"}, "in\n").prompt),
      "in\n");
}

TEST(GenerateFlagsTest, APromptMayBeTokenIds) {
  const auto request = RequestOf({"--prompt-tokens", "0 17, 4"});
  EXPECT_THAT(std::get<TokenSeq>(request.prompt), ElementsAre(0, 17, 4));
}

TEST(GenerateFlagsTest, AResumeNamesTheTokensTheSeedAndTheModel) {
  const auto request = RequestOf({"text", "--resume-tokens", "5 6", "--seed",
                                  "1", "--resume-model", "ab:float32:avx2"});
  EXPECT_THAT(*request.delivered, ElementsAre(5, 6));
  EXPECT_EQ(request.model->weights_hash, "ab");
  EXPECT_THAT(UsageError({"text", "--resume-tokens", "5 6", "--seed", "1"}),
              HasSubstr("needs --seed and --resume-model"));
  EXPECT_THAT(UsageError({"text", "--resume-tokens", "5 6", "--resume-model",
                          "ab:float32:avx2"}),
              HasSubstr("needs --seed and --resume-model"));
  EXPECT_THAT(UsageError({"text", "--resume-model", "ab"}),
              HasSubstr("WEIGHTS:DTYPE:NUMERICS"));
}

TEST(GenerateFlagsTest, TheTokensOfAResumeMayComeFromAFile) {
  const auto delivered = [](const std::vector<std::string>& words,
                            const std::string& in) {
    std::vector<std::string> all = {"--seed", "1", "--resume-model",
                                    "ab:float32:avx2"};
    all.insert(all.end(), words.begin(), words.end());
    return RequestOf(all, in).delivered.value();
  };
  EXPECT_THAT(delivered({"text", "--resume-tokens", "-"}, "5 6\n"),
              ElementsAre(5, 6));
  const std::string path = ::testing::TempDir() + "/tokens.txt";
  std::ofstream(path) << "7\n8 9\n";
  EXPECT_THAT(
      delivered({"--prompt-file", "-", "--resume-tokens", "@" + path}, "text"),
      ElementsAre(7, 8, 9));
}

TEST(GenerateFlagsTest, ASaltMayComeFromAFile) {
  const std::string path = ::testing::TempDir() + "/salt";
  std::ofstream(path) << "@home\n";
  EXPECT_EQ(RequestOf({"text", "--cache-salt", "@" + path}).cache_salt,
            "@home");
  for (const std::string text : {"a secret", "a secret\n", "a secret\r\n"}) {
    std::ofstream(path) << text;
    EXPECT_EQ(RequestOf({"text", "--cache-salt", "@" + path}).cache_salt,
              "a secret");
  }
  std::ofstream(path) << "\n";
  EXPECT_THAT(UsageError({"text", "--cache-salt", "@" + path}),
              HasSubstr("is empty"));
  EXPECT_THAT(UsageError({"text", "--cache-salt", "@/no/such"}),
              HasSubstr("--cache-salt: cannot read \"/no/such\""));
  EXPECT_THAT(UsageError({"text", "--cache-salt", "\xff"}),
              HasSubstr("--cache-salt is not UTF-8"));
}

TEST(GenerateFlagsTest, TheTokensOfAResumeHaveToBeThere) {
  const auto error = [](const std::string& tokens, const std::string& prompt) {
    return UsageError({"--prompt-file", prompt, "--seed", "1", "--resume-model",
                       "ab:float32:avx2", "--resume-tokens", tokens});
  };
  const std::string path = ::testing::TempDir() + "/prompt_of_resume.txt";
  std::ofstream(path) << "text";
  EXPECT_THAT(error("@/no/such", path), HasSubstr("tokens: cannot read"));
  EXPECT_THAT(error("-", path), HasSubstr("--resume-tokens is empty"));
  EXPECT_THAT(error("@", path), HasSubstr("cannot read \"\""));
}

TEST(GenerateFlagsTest, AFileWithoutAnEndIsReadNoFurtherThanARequestMayGo) {
  // The rest of the request has to fit, too.
  EXPECT_THAT(UsageError({"--prompt-file", "-"}, std::string(8 << 20, 'a')),
              HasSubstr("--prompt-file: \"-\" has more than 8160 KiB"));
  EXPECT_EQ(UsageError({"--prompt-file", "-"}, std::string(8160 << 10, 'a')),
            "");
  EXPECT_THAT(UsageError({"--prompt-file", "/dev/zero"}),
              HasSubstr("\"/dev/zero\" has more than 8160 KiB"));
}

TEST(GenerateFlagsTest, OneOfPromptTokensAndSaltMayBeStandardInput) {
  for (const char* tokens : {"-", "@-"}) {
    EXPECT_THAT(
        UsageError({"--prompt-file", "-", "--seed", "1", "--resume-model",
                    "ab:float32:avx2", "--resume-tokens", tokens},
                   "text"),
        HasSubstr("--prompt-file and --resume-tokens cannot both read"));
  }
  EXPECT_THAT(
      UsageError({"--prompt-file", "-", "--cache-salt", "@-"}, "text"),
      HasSubstr("--prompt-file and --cache-salt cannot both read standard "
                "input"));
}

// What a tokenizer adds to it may be enough to go on from.
TEST(GenerateFlagsTest, APromptMayBeEmpty) {
  EXPECT_EQ(std::get<std::string>(RequestOf({""}).prompt), "");
  EXPECT_EQ(std::get<std::string>(RequestOf({"--prompt-file", "-"}).prompt),
            "");
}

TEST(GenerateFlagsTest, ErrorsSayWhatToGiveInstead) {
  EXPECT_THAT(UsageError({}), HasSubstr("give one prompt"));
  EXPECT_THAT(UsageError({"a", "--prompt-tokens", "1"}),
              HasSubstr("give one prompt"));
  EXPECT_THAT(UsageError({"--prompt-file", "/no/such"}),
              HasSubstr("cannot read \"/no/such\""));
  EXPECT_THAT(UsageError({"--prompt-file", "/"}), HasSubstr("cannot read"));
  EXPECT_THAT(UsageError({"--prompt-tokens", "1 x"}), HasSubstr("not \"x\""));
  EXPECT_THAT(UsageError({"--prompt-tokens", "-1"}), HasSubstr("not \"-1\""));
  EXPECT_THAT(UsageError({"--prompt-tokens", " "}), HasSubstr("is empty"));
  EXPECT_THAT(UsageError({"a", "--stop-token-ids", "1 x"}),
              HasSubstr("--stop-token-ids needs token ids"));
  EXPECT_THAT(UsageError({"a", "--coordinator", "nowhere"}),
              HasSubstr("needs HOST:PORT"));
  EXPECT_THAT(UsageError({"a", "--coordinator", "10.0.0.1:7000"}),
              HasSubstr("--insecure"));
}

TEST(GenerateFlagsTest, KMayBeLeftToTheCoordinator) {
  EXPECT_TRUE(RequestOf({"a", "-k", "auto"}).is_k_auto);
  EXPECT_FALSE(RequestOf({"a", "-k", "auto"}).num_speculative_tokens);
  EXPECT_FALSE(RequestOf({"a", "-k", "3"}).is_k_auto);
  EXPECT_FALSE(RequestOf({"a"}).is_k_auto);
}

TEST(GenerateFlagsTest, RangesAreTheServers) {
  EXPECT_THAT(UsageError({"a", "--min-draft-probability", "1"}),
              HasSubstr("at least 0 and below 1"));
  EXPECT_THAT(UsageError({"a", "--draft-support-mass", "0"}),
              HasSubstr("above 0 and at most 1"));
  EXPECT_EQ(RequestOf({"a", "--top-p", "1e-12"}).top_p, 1e-12);
}

TEST(GenerateFlagsTest, ValuesOutOfRangeAreRefused) {
  EXPECT_THAT(UsageError({"a", "--temperature", "11"}),
              HasSubstr("--temperature: needs a number between 0 and 10"));
  EXPECT_THAT(UsageError({"a", "--temperature", "nan"}), HasSubstr("nan"));
  EXPECT_THAT(UsageError({"a", "--top-p", "0"}), HasSubstr("--top-p"));
  EXPECT_THAT(UsageError({"a", "--max-tokens", "0"}), HasSubstr("between 1"));
  EXPECT_THAT(UsageError({"a", "-k", "-1"}), HasSubstr("whole number"));
  EXPECT_THAT(UsageError({"a", "-k", "many"}), HasSubstr("or auto"));
  EXPECT_THAT(UsageError({"a", "--seed", "1.5"}), HasSubstr("\"1.5\""));
  EXPECT_THAT(UsageError({"a", "--timeout", "0"}), HasSubstr("--timeout"));
  EXPECT_THAT(UsageError({"a", "--color", "red"}), HasSubstr("auto"));
}

}  // namespace
}  // namespace outrider::client
