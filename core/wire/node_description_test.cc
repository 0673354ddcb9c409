// SPDX-License-Identifier: Apache-2.0
#include "core/wire/node_description.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

NodeDescription Node(const std::string& name) {
  return {.model_name = name,
          .weights_hash = name + "'s weights",
          .tokenizer_hash = "0123456789abcdef",
          .vocab_size = 4096,
          .eos_ids = {1, 7},
          .context_length = 1024,
          .dtype = "bfloat16",
          .device = "cpu",
          .max_draft_tokens = 8,
          .build = "test",
          .reply_formats = {ReplyFormat::kFull, ReplyFormat::kTokens},
          .draft_strategy = "model",
          .rules = {RuleKind::kRejection, RuleKind::kCoupled},
          .prefix_cache = "salted"};
}

TEST(NodeDescriptionTest, OneProtocolVersionUpOrDownIsServedAndTwoAreNot) {
  for (const int apart : {-2, -1, 0, 1, 2}) {
    SCOPED_TRACE(apart);
    NodeDescription node = Node("a");
    node.protocol_version = kProtocolVersion + apart;
    const absl::Status as_verifier = CheckVerifier(node);
    const absl::Status as_drafter = CheckPair(node, Node("b"));
    if (apart >= -1 && apart <= 1) {
      EXPECT_THAT(as_verifier, IsOk());
      EXPECT_THAT(as_drafter, IsOk());
      continue;
    }
    const auto both_versions =
        AllOf(HasSubstr(absl::StrCat("protocol ", node.protocol_version)),
              HasSubstr(absl::StrCat("coordinator ", kProtocolVersion)),
              HasSubstr("upgrade"));
    EXPECT_THAT(as_verifier, StatusIs(kRefused, both_versions));
    EXPECT_THAT(as_verifier, StatusIs(kRefused, HasSubstr("the verifier")));
    EXPECT_THAT(as_drafter, StatusIs(kRefused, both_versions));
    EXPECT_THAT(as_drafter, StatusIs(kRefused, HasSubstr("the drafter")));
  }
}

TEST(NodeDescriptionTest, ADescriptionOfExtremeVersionsIsRefused) {
  for (const uint32_t version :
       {uint32_t{0x7fffffff}, uint32_t{0x80000000}, uint32_t{0xffffff00}}) {
    v1::NodeDescription proto = ToProto(Node("a"));
    proto.set_protocol_version(version);
    EXPECT_THAT(CheckVerifier(FromProto(proto)), StatusIs(kRefused));
  }
}

TEST(NodeDescriptionTest, WhatANodeHasDoneComesThrough) {
  NodeDescription node = Node("a");
  EXPECT_FALSE(FromProto(ToProto(node)).activity.has_value());
  node.activity = {.num_passes = 1,
                   .num_rows = 2,
                   .num_pass_sessions = 3,
                   .num_prefill_chunks = 4,
                   .num_preemptions = 5,
                   .num_decode_calls = 6,
                   .decode_queue_seconds = 7.25,
                   .num_prefill_calls = 8,
                   .prefill_queue_seconds = 9.5,
                   .num_sessions = 10,
                   .num_kv_blocks = 11,
                   .num_kv_blocks_used = 12};
  EXPECT_EQ(FromProto(ToProto(node)), node);
  node.activity->gpu = {.name = "a GPU",
                        .memory_bytes = 13,
                        .num_graphs = 14,
                        .num_late_graphs = 15,
                        .num_graph_replays = 16,
                        .num_answered_rows = 17,
                        .num_copied_rows = 18,
                        .num_undecided_rows = 19};
  EXPECT_EQ(FromProto(ToProto(node)), node);
}

TEST(NodeDescriptionTest, APairOfTwoModelsWithOneTokenizerFits) {
  NodeDescription drafter = Node("small");
  drafter.context_length = 512;
  drafter.eos_ids = {};
  drafter.dtype = "float32";
  drafter.max_draft_tokens = 4;
  drafter.reply_formats = {};
  EXPECT_THAT(CheckPair(drafter, Node("large")), IsOk());
}

TEST(NodeDescriptionTest, AnotherTokenizerIsRefusedByBothNamesAndHashes) {
  NodeDescription drafter = Node("small");
  drafter.tokenizer_hash = "fedcba9876543210";
  EXPECT_THAT(CheckPair(drafter, Node("large")),
              StatusIs(kRefused, AllOf(HasSubstr("small"), HasSubstr("large"),
                                       HasSubstr("fedcba987654"),
                                       HasSubstr("0123456789ab"),
                                       HasSubstr("same family"))));
}

TEST(NodeDescriptionTest, AnotherVocabularySizeIsRefusedWithBothSizes) {
  for (const int size : {4095, 4097, 0}) {
    NodeDescription drafter = Node("small");
    drafter.vocab_size = size;
    EXPECT_THAT(CheckPair(drafter, Node("large")),
                StatusIs(kRefused, AllOf(HasSubstr(absl::StrCat(size, " tok")),
                                         HasSubstr("4096"))));
  }
}

TEST(NodeDescriptionTest, AVerifierMustHaveWordsContextAndFullReplies) {
  EXPECT_THAT(CheckVerifier(Node("a")), IsOk());
  NodeDescription wordless = Node("a");
  wordless.vocab_size = 0;
  EXPECT_THAT(CheckVerifier(wordless),
              StatusIs(kRefused, HasSubstr("vocabulary of 0")));
  NodeDescription blind = Node("a");
  blind.context_length = 1;
  EXPECT_THAT(CheckVerifier(blind),
              StatusIs(kRefused, HasSubstr("context of 1")));
  NodeDescription terse = Node("a");
  terse.reply_formats = {ReplyFormat::kTokens, ReplyFormat::kSparse};
  EXPECT_THAT(CheckVerifier(terse),
              StatusIs(kRefused, HasSubstr("REPLY_FORMAT_FULL")));
}

TEST(NodeDescriptionTest, ComesBackFromItsMessageAsItWas) {
  NodeDescription node = Node("a");
  node.protocol_version = kProtocolVersion + 1;
  node.is_simulated = true;
  node.max_outcomes = kMaxOutcomes;
  const NodeDescription back = FromProto(ToProto(node));
  EXPECT_EQ(back.model_name, node.model_name);
  EXPECT_EQ(back.weights_hash, node.weights_hash);
  EXPECT_EQ(back.tokenizer_hash, node.tokenizer_hash);
  EXPECT_EQ(back.vocab_size, node.vocab_size);
  EXPECT_EQ(back.eos_ids, node.eos_ids);
  EXPECT_EQ(back.context_length, node.context_length);
  EXPECT_EQ(back.dtype, node.dtype);
  EXPECT_EQ(back.device, node.device);
  EXPECT_EQ(back.max_draft_tokens, node.max_draft_tokens);
  EXPECT_EQ(back.protocol_version, node.protocol_version);
  EXPECT_EQ(back.build, node.build);
  EXPECT_EQ(back.reply_formats, node.reply_formats);
  EXPECT_EQ(back.draft_strategy, node.draft_strategy);
  EXPECT_EQ(back.is_simulated, node.is_simulated);
  EXPECT_EQ(back.rules, node.rules);
  EXPECT_EQ(back.prefix_cache, node.prefix_cache);
  EXPECT_EQ(back.max_outcomes, node.max_outcomes);
}

TEST(NodeDescriptionTest, FormatsAndRulesOfNewerNodesAreLeftOut) {
  v1::NodeDescription proto = ToProto(Node("a"));
  proto.add_reply_formats(static_cast<v1::ReplyFormat>(99));
  proto.add_acceptance_rules(static_cast<v1::AcceptanceRule>(99));
  const NodeDescription node = FromProto(proto);
  EXPECT_EQ(node.reply_formats, Node("a").reply_formats);
  EXPECT_EQ(node.rules, Node("a").rules);
}

}  // namespace
}  // namespace outrider
