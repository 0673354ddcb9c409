// SPDX-License-Identifier: Apache-2.0
#include "client/deployment_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace outrider::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Deployment Pair() {
  NodeDescription target = {
      .model_name = "target",
      .weights_hash = "0123abcd",
      .vocab_size = 4096,
      .dtype = "bfloat16",
      .device = "cpu",
      .max_draft_tokens = 16,
      .reply_formats = {ReplyFormat::kSparse, ReplyFormat::kTokens},
      .rules = {RuleKind::kRejection, RuleKind::kBlock}};
  target.activity = NodeActivity{.num_passes = 4, .num_kv_blocks = 90};
  NodeDescription draft = target;
  draft.model_name = "draft \"\xff\"";
  draft.reply_formats.clear();
  draft.activity.reset();
  return {.verifiers = {target},
          .drafters = {draft},
          .refused_drafters = {"another tokenizer"},
          .has_tokenizer = true};
}

size_t Width(const std::string& text) {
  size_t width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    width = std::max(width, line.size());
  }
  return width;
}

TEST(DeploymentReportTest, ALineANodeWhereItFits) {
  const std::string table = ToText(Pair());
  EXPECT_THAT(table, AllOf(HasSubstr("role      model "),
                           HasSubstr("\nverifier  target "),
                           HasSubstr("\nverifier target: 4 passes of ")));
  EXPECT_EQ(ToText(Pair(), 1000), table);
}

TEST(DeploymentReportTest, ABlockANodeWhereItDoesNot) {
  const std::string blocks = ToText(Pair(), 60);
  EXPECT_LE(Width(blocks), 60u);
  EXPECT_THAT(blocks,
              AllOf(HasSubstr("verifier target\n  strategy    -\n"),
                    HasSubstr("\n  replies     sparse,tokens\n"),
                    HasSubstr("\ndrafter draft "),
                    HasSubstr("\n  replies     -\n"), Not(HasSubstr("role"))));
  // All words of the notes are there, those after a break further in.
  std::string unbroken = blocks;
  for (size_t at; (at = unbroken.find("\n  ")) != std::string::npos;) {
    unbroken.replace(at, 3, " ");
  }
  EXPECT_THAT(unbroken, HasSubstr("0 prefill chunks, 0 preemptions; a decode "
                                  "waited 0.00 ms for passes, a prefill 0.00 "
                                  "ms. Now 0 sessions in 0 of 90 KV blocks\n"));
  EXPECT_THAT(blocks, HasSubstr("\nrefused drafter: another tokenizer\n"));
}

// The table has only just no room: the notes, which are wider, do not decide.
TEST(DeploymentReportTest, TheTableDecidesWhichItIs) {
  Deployment pair = Pair();
  pair.verifiers[0].activity.reset();
  const size_t width = Width(ToText(pair));
  EXPECT_THAT(ToText(Pair(), width), HasSubstr("role "));
  EXPECT_THAT(ToText(Pair(), width - 1), Not(HasSubstr("role ")));
}

TEST(DeploymentReportTest, JsonHasWhatTheTableHas) {
  const std::string line = ToJson(Pair());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["has_tokenizer"], true);
  EXPECT_EQ(json["refused_verifiers"], nlohmann::json::array());
  EXPECT_EQ(json["refused_drafters"][0], "another tokenizer");
  const auto& verifier = json["verifiers"][0];
  EXPECT_EQ(verifier["model"], "target");
  EXPECT_EQ(verifier["weights_hash"], "0123abcd");
  EXPECT_EQ(verifier["vocab_size"], 4096);
  EXPECT_EQ(verifier["rules"], nlohmann::json({"rejection", "block"}));
  EXPECT_EQ(verifier["reply_formats"], nlohmann::json({"sparse", "tokens"}));
  EXPECT_EQ(verifier["activity"]["num_passes"], 4);
  EXPECT_TRUE(verifier["activity"]["gpu"].is_null());
  const auto& drafter = json["drafters"][0];
  EXPECT_EQ(drafter["model"], "draft \"\uFFFD\"");
  EXPECT_EQ(drafter["reply_formats"], nlohmann::json::array());
  EXPECT_TRUE(drafter["activity"].is_null());
}

TEST(DeploymentReportTest, JsonHasWhatAGpuHasDone) {
  Deployment pair = Pair();
  pair.verifiers[0].activity->gpu =
      GpuActivity{.name = "a GPU", .num_graphs = 4};
  const auto json = nlohmann::json::parse(ToJson(pair));
  const auto& gpu = json["verifiers"][0]["activity"]["gpu"];
  EXPECT_EQ(gpu["name"], "a GPU");
  EXPECT_EQ(gpu["num_graphs"], 4);
}

}  // namespace
}  // namespace outrider::client
