// SPDX-License-Identifier: Apache-2.0
#include "bench/report/results_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "bench/load/prompts.h"
#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResultsFileTest : public ::testing::Test {
 protected:
  ResultsFileTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ResultsFileTest() override { std::filesystem::remove_all(folder_); }

  static Configuration Made(const std::string& model) {
    return {.binding = {{"model", model}}};
  }
  static Measurement At(int k, int repeat = 0) {
    return {.point = {.cell = {.rtt_ms = 2.5, .load = {8}, .k = k},
                      .repeat = repeat},
            .origin = {.is_simulated = true,
                       .machine = "a machine",
                       .machine_load = 0.5,
                       .date = "2026-11-21 12:00 UTC",
                       .commit = "1a2b"},
            .num_requests = 3,
            .counts = {.ahead = {.num_hits = 7,
                                 .num_misses = 5,
                                 .num_after_refusal = 6,
                                 .num_hits_after_refusal = 3}},
            .mean_in_flight = 7.5,
            .token_ms = {.p50 = 1, .p90 = 2, .p99 = 3, .mean = 1.5},
            .tokens_per_second = 500,
            .offered = {4, 4},
            .accepted = {3, 1},
            .split = {.draft_ms = 0.5},
            .verifier_rtt_ms = 2.6,
            .plain_token_ms = 1.25,
            .plain_network_token_ms = 4,
            .plain_network_tokens_per_second = 250};
  }
  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("results_" + std::to_string(getpid()));
};

TEST_F(ResultsFileTest, ALineComesBackAsItWas) {
  const Measurement was = At(4);
  const Measurement is = *FromJsonLine(ToJsonLine(was, "print"), "print");
  EXPECT_EQ(is.point, was.point);
  EXPECT_TRUE(is.origin.is_simulated);
  EXPECT_EQ(is.origin.commit, "1a2b");
  EXPECT_EQ(is.speedup(), was.speedup());
  EXPECT_EQ(is.network_speedup(), 2);
  EXPECT_EQ(is.network_speedup(), was.network_speedup());
  EXPECT_EQ(is.offered, was.offered);
  EXPECT_EQ(is.counts, was.counts);
  EXPECT_EQ(is.accepted, was.accepted);
  EXPECT_EQ(is.verifier_rtt_ms, 2.6);
  EXPECT_EQ(is.drafter_rtt_ms, std::nullopt);
  EXPECT_EQ(ToJsonLine(is, "print"), ToJsonLine(was, "print"));
}

TEST_F(ResultsFileTest, WhatIsNotUtf8IsReplaced) {
  Measurement failed = At(4);
  failed.first_failure = "no file \xff";
  const std::string line = ToJsonLine(failed, Made("model \xff").Fingerprint());
  EXPECT_THAT(line, HasSubstr("no file \xEF\xBF\xBD"));
  EXPECT_THAT(FromJsonLine(line, Made("model \xff").Fingerprint()), IsOk());
}

TEST_F(ResultsFileTest, KByControlComesBackAsItself) {
  const std::string line = ToJsonLine(At(kAutoK), "print");
  EXPECT_THAT(line, HasSubstr("\"k\":\"auto\""));
  EXPECT_EQ(FromJsonLine(line, "print")->point, At(kAutoK).point);
}

TEST_F(ResultsFileTest, ResumingHasWhatWasMeasuredAndGoesOn) {
  {
    auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false);
    ASSERT_TRUE(file->Append(At(0)).ok());
    ASSERT_TRUE(file->Append(At(4)).ok());
  }
  auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/true);
  EXPECT_TRUE(file->Has(At(4).point));
  EXPECT_FALSE(file->Has(At(4, /*repeat=*/1).point));
  EXPECT_EQ(file->BaselinesOf(At(4).point).plain->point, At(0).point);
  EXPECT_EQ(file->BaselinesOf(At(4).point).alone, nullptr);
  ASSERT_TRUE(file->Append(At(8)).ok());
  EXPECT_EQ(file->measurements().size(), 3U);
}

TEST_F(ResultsFileTest, APointWithFailuresIsMeasuredAgainInItsPlace) {
  auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false);
  Measurement failed = At(4);
  failed.num_failures = 1;
  ASSERT_TRUE(file->Append(failed).ok());
  EXPECT_FALSE(file->Has(failed.point));
  ASSERT_TRUE(file->Append(At(4)).ok());
  file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/true);
  ASSERT_EQ(file->measurements().size(), 1U);
  EXPECT_TRUE(file->Has(failed.point));
}

TEST_F(ResultsFileTest, ALineCutShortIsMeasuredAgain) {
  {
    auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false);
    ASSERT_TRUE(file->Append(At(0)).ok());
  }
  std::ofstream(Path("a/results.jsonl"), std::ios::app) << "{\"configur";
  auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/true);
  EXPECT_EQ(file->measurements().size(), 1U);
  ASSERT_TRUE(file->Append(At(4)).ok());
  file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/true);
  EXPECT_EQ(file->measurements().size(), 2U);
}

TEST_F(ResultsFileTest, RefusesOldResultsThatAreNotOfThisConfiguration) {
  auto file = *ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false);
  ASSERT_TRUE(file->Append(At(0)).ok());
  EXPECT_THAT(ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false),
              StatusIs(absl::StatusCode::kAlreadyExists));
  const auto other = ResultsFile::Open(Path("a"), Made("y"), /*resume=*/true);
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("another configuration"));
}

TEST_F(ResultsFileTest, AFileWithoutResultsIsInNobodysWay) {
  ASSERT_THAT(ResultsFile::Open(Path("a"), Made("x"), /*resume=*/false),
              IsOk());
  EXPECT_THAT(ResultsFile::Open(Path("a"), Made("y"), /*resume=*/false),
              IsOk());
  EXPECT_THAT(ResultsFile::Open(Path("a"), Made("z"), /*resume=*/true), IsOk());
}

TEST_F(ResultsFileTest, RefusesAFolderThatIsNone) {
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(ResultsFile::Open(Path("file"), Made("x"), /*resume=*/false),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ResultsFileTest, PromptsAreTextsOrTokensEachOnce) {
  std::ofstream(Path("p")) << "{\"prompt\": \"a\", \"more\": 1}\n\n"
                              "{\"prompt\": [1, 2]}\n{\"prompt\": \"a\"}\n";
  EXPECT_THAT(*LoadPrompts(Path("p")),
              ElementsAre(Prompt("a"), Prompt(TokenSeq{1, 2})));
}

TEST_F(ResultsFileTest, PromptsThatAreNoJsonlAreRefusedByLine) {
  for (const char* line :
       {"def f():", "[1]", "{\"text\": \"a\"}", "{\"prompt\": \"\"}",
        "{\"prompt\": [-1]}", "{\"prompt\": [\"a\"]}", "{\"prompt\": 1}"}) {
    std::ofstream(Path("p")) << "{\"prompt\": \"a\"}\n" << line << "\n";
    const auto prompts = LoadPrompts(Path("p"));
    EXPECT_THAT(prompts, StatusIs(absl::StatusCode::kInvalidArgument)) << line;
    EXPECT_THAT(std::string(prompts.status().message()), HasSubstr("line 2"));
  }
  EXPECT_THAT(LoadPrompts(Path("none")), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(Path("empty")) << "\n";
  EXPECT_THAT(LoadPrompts(Path("empty")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ResultsFileTest, MadeUpPromptsAreAllDifferent) {
  const std::vector<Prompt> prompts = MakePrompts(4096, 16, 256);
  EXPECT_EQ(std::set<Prompt>(prompts.begin(), prompts.end()).size(), 4096U);
}

}  // namespace
}  // namespace outrider::bench
