// SPDX-License-Identifier: Apache-2.0
#include "bench/command/bench_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/command/bench_test.h"

namespace outrider::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using BenchOptionsTest = BenchTest;

TEST_F(BenchOptionsTest, BadListsAreRefusedByName) {
  EXPECT_THAT(UsageError({"--k", "two"}), HasSubstr("--k"));
  EXPECT_THAT(UsageError({"--k", "5000"}), HasSubstr("--k"));
  EXPECT_THAT(UsageError({"--rtt=-1"}), HasSubstr("--rtt"));
  EXPECT_THAT(UsageError({"--concurrency", "0"}), HasSubstr("--concurrency"));
  EXPECT_THAT(UsageError({"--rate", "0"}), HasSubstr("--rate"));
  EXPECT_THAT(UsageError({"--k", "1,2"}, /*is_sweep=*/false),
              HasSubstr("bench sweep"));
}

TEST_F(BenchOptionsTest, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_THAT(UsageError({"--rate", "1", "--concurrency", "2"}),
              HasSubstr("excludes"));
  EXPECT_THAT(UsageError({"--coordinator", "127.0.0.1:1", "--jitter", "1",
                          "--rtt", "0"}),
              HasSubstr("own network"));
  EXPECT_THAT(UsageError({"--coordinator", "127.0.0.1:1", "--rtt", "5"}),
              HasSubstr("own network"));
  EXPECT_THAT(UsageError({"--coordinator", "127.0.0.1:1", "--rtt", "0",
                          "--network", "tunnel"}),
              HasSubstr("own network"));
  EXPECT_THAT(
      UsageError({"--network", "tunnel", "--mean-bytes-to-reset", "1000"}),
      HasSubstr("use --network proxy"));
  EXPECT_THAT(UsageError({"--coordinator", "nowhere", "--rtt", "0"}),
              HasSubstr("HOST:PORT"));
  EXPECT_THAT(UsageError({"--jitter", "1", "--rtt", "0,10"}),
              HasSubstr("--jitter"));
  EXPECT_THAT(UsageError({"--simulate"}), HasSubstr("--simulate-verify-ms"));
  EXPECT_THAT(UsageError({"--simulate-verify-ms", "3"}),
              HasSubstr("--simulate"));
  EXPECT_THAT(UsageError({"--target-model", "x"}), HasSubstr("--draft-model"));
  EXPECT_THAT(UsageError({"--acceptance-rule", "lenient"}),
              HasSubstr("greedy"));
  EXPECT_THAT(
      UsageError({"--acceptance-rule", "coupled", "--reply-format", "sparse"}),
      HasSubstr("tokens or full"));
}

TEST_F(BenchOptionsTest, ASweepOfADeploymentAddsNoRoundTrips) {
  const auto own = Options({});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(own->grid.rtts_ms, ElementsAre(0, 1, 5, 20, 50));
  const auto running = Options({"--coordinator", "127.0.0.1:1"});
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_THAT(running->grid.rtts_ms, ElementsAre(0));
}

TEST_F(BenchOptionsTest, TheRuleGoesWithEachRequest) {
  const auto coupled =
      Options({"--simulate", "--simulate-verify-ms", "14.1",
               "--acceptance-rule", "coupled", "--temperature", "0.7"});
  ASSERT_TRUE(coupled.ok()) << coupled.status();
  EXPECT_EQ(coupled->request.acceptance_rule, RuleKind::kCoupled);
  EXPECT_EQ(coupled->request.temperature, 0.7);
  const auto block = Options({"--simulate", "--simulate-verify-ms", "14.1",
                              "--acceptance-rule", "block", "--reply-format",
                              "full-bfloat16"});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->request.acceptance_rule, RuleKind::kBlock);
  EXPECT_EQ(block->request.reply_format, ReplyFormat::kFullBFloat16);
  const auto greedy = Options({"--simulate", "--simulate-verify-ms", "14.1"});
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  EXPECT_EQ(greedy->request.acceptance_rule, RuleKind::kRejection);
  EXPECT_FALSE(greedy->request.lossy_lenience.has_value());
  const auto lossy = Options({"--simulate", "--simulate-verify-ms", "14.1",
                              "--acceptance-rule", "rejection", "--temperature",
                              "0", "--lossy-lenience", "0.5"});
  ASSERT_TRUE(lossy.ok()) << lossy.status();
  EXPECT_EQ(lossy->request.lossy_lenience, 0.5);
  EXPECT_EQ(lossy->request.temperature, 0);
  for (const std::string rule : {"greedy", "block", "coupled"}) {
    EXPECT_THAT(
        UsageError({"--acceptance-rule", rule, "--lossy-lenience", "0.5"}),
        HasSubstr("needs --acceptance-rule rejection"));
  }
  EXPECT_EQ(greedy->request.temperature, 0);
}

TEST_F(BenchOptionsTest, TokensPerRoundFitTheAcceptanceAtTheLargestK) {
  const auto options =
      Options({"--simulate", "--simulate-verify-ms", "14.1", "--k", "1,2",
               "--simulate-tokens-per-round", "1.75"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_NEAR(options->trio.simulation->acceptance, 0.5, 1e-9);
  EXPECT_TRUE(options->configuration.is_simulated);
  const auto error = [this](const std::string& ks, const std::string& tokens) {
    return UsageError({"--simulate", "--simulate-verify-ms", "14.1", "--k", ks,
                       "--simulate-tokens-per-round", tokens});
  };
  EXPECT_THAT(error("auto", "3"), HasSubstr("--k names none above 0"));
  EXPECT_THAT(error("0", "1"), HasSubstr("--k names none above 0"));
  EXPECT_THAT(error("4,auto", "5.1"), HasSubstr("more than a round of K + 1"));
  EXPECT_EQ(error("4,auto", "5"), "");
}

TEST_F(BenchOptionsTest, TooFewPromptsForTheRepeatsAreRefused) {
  WritePrompts(8);
  EXPECT_THAT(UsageError({"--concurrency", "2", "--repeat", "3"}),
              HasSubstr("need 9 prompts"));
  EXPECT_EQ(UsageError({"--concurrency", "2", "--repeat", "2"}), "");
}

}  // namespace
}  // namespace outrider::bench
