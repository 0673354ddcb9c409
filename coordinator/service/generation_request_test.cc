// SPDX-License-Identifier: Apache-2.0
// What a request that says little comes to, and what is refused here; the rest
// of its fields are tested through the service (tests/integration).
#include "coordinator/service/generation_request.h"

#include "coordinator/nodes/refusal_reasons.h"
#include "core/base/error_reason.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int kVocabSize = 5000;

// One token for two bytes, or for one at the end; counts the texts it is given.
class PairTokenizer final : public Tokenizer {
 public:
  std::vector<TokenId> Encode(absl::string_view text) const override {
    ++num_texts;
    return std::vector<TokenId>((text.size() + 1) / 2, 7);
  }
  std::optional<size_t> max_bytes_per_token() const override { return 2; }
  std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> /*before*/) const override {
    return nullptr;
  }
  int vocab_size() const override { return kVocabSize; }
  const std::string& fingerprint() const override { return fingerprint_; }

  mutable int num_texts = 0;

 private:
  const std::string fingerprint_ = "pairs";
};

class GenerationRequestTest : public ::testing::Test {
 protected:
  GenerationRequestTest() {
    proto_.mutable_tokens()->add_ids(7);
    proto_.mutable_tokens()->add_ids(8);
  }
  GenerationRequest Parsed() {
    const auto request = ParseRequest(proto_, limits_);
    EXPECT_THAT(request, IsOk());
    return request.ok() ? *request : GenerationRequest();
  }
  ReplyFormat FormatOf(v1::AcceptanceRule rule, double temperature) {
    proto_.set_acceptance_rule(rule);
    proto_.set_temperature(temperature);
    return Parsed().reply_format;
  }

  absl::Status Refusal() { return ParseRequest(proto_, limits_).status(); }
  std::optional<std::string> Why() { return ErrorReasonOf(Refusal()); }
  std::map<std::string, std::string> WhyMetadata() {
    return ErrorMetadataOf(Refusal());
  }

  GenerationLimits limits_ = {
      .vocab_size = kVocabSize,
      .context_length = 100,
      .longest_text = 100,
      .max_draft_tokens = 16,
      .most_draft_tokens = 16,
      .default_draft_tokens = 4,
      .eos_ids = {0},
      .reply_formats = {ReplyFormat::kFull, ReplyFormat::kSparse,
                        ReplyFormat::kTokens},
      .rules = {RuleKind::kRejection, RuleKind::kCoupled, RuleKind::kBlock}};
  v1::GenerateRequest proto_;
};

TEST_F(GenerationRequestTest, WhatIsNotSaidIsTheCoordinatorsChoice) {
  const GenerationRequest request = Parsed();
  EXPECT_THAT(request.prompt, ElementsAre(7, 8));
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.rule, RuleKind::kRejection);
  EXPECT_EQ(request.max_length, 100);
  EXPECT_THAT(request.eos_ids, ElementsAre(0));
  EXPECT_EQ(request.num_speculative_tokens, 4);
  EXPECT_EQ(request.draft_options, kGenerationDraftOptions);
  EXPECT_FALSE(request.logprobs.has_value());
  // A seed of its own, each time another one.
  EXPECT_NE(request.seed, Parsed().seed);
}

TEST_F(GenerationRequestTest, TheDefaultKIsNoMoreThanTheNodesTake) {
  limits_.default_draft_tokens = 40;
  EXPECT_EQ(Parsed().num_speculative_tokens, 16);
  proto_.set_num_speculative_tokens(17);
  EXPECT_THAT(
      ParseRequest(proto_, limits_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not 17")));
}

TEST_F(GenerationRequestTest, KIsWhatItsNodesTakeWhereOthersTakeMore) {
  limits_.max_draft_tokens = 4;
  proto_.set_num_speculative_tokens(16);
  EXPECT_EQ(Parsed().num_speculative_tokens, 4);
  proto_.set_num_speculative_tokens(17);
  EXPECT_THAT(Refusal(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("between 0 and 16, not 17")));
}

TEST_F(GenerationRequestTest, AResumeDraftsNoMoreThanTheNodesHereTake) {
  proto_.set_num_speculative_tokens(40);
  proto_.mutable_model()->set_weights_hash("A");
  EXPECT_EQ(Parsed().num_speculative_tokens, 16);
}

TEST_F(GenerationRequestTest, WhereKIsChosenByRoundItIsTheMost) {
  limits_.default_draft_length_mode = DraftLengthMode::kAuto;
  EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kAuto);
  EXPECT_EQ(Parsed().num_speculative_tokens, 16);
  proto_.set_num_speculative_tokens(3);
  EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kFixed);
  EXPECT_EQ(Parsed().num_speculative_tokens, 3);
  proto_.set_auto_num_speculative_tokens(true);
  EXPECT_THAT(ParseRequest(proto_, limits_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("leave one of the two out")));
}

TEST_F(GenerationRequestTest, ASeedFixesKWhereTheTextDependsOnIt) {
  limits_.default_draft_length_mode = DraftLengthMode::kAuto;
  proto_.set_seed(7);
  for (const auto rule :
       {v1::ACCEPTANCE_RULE_REJECTION, v1::ACCEPTANCE_RULE_BLOCK}) {
    proto_.set_acceptance_rule(rule);
    proto_.set_temperature(1);
    EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kFixed);
    EXPECT_EQ(Parsed().num_speculative_tokens, 4);
    proto_.set_temperature(0);
    EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kAuto);
  }
  proto_.set_temperature(1);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_COUPLED);
  EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kAuto);
}

TEST_F(GenerationRequestTest, WhoAsksForKByRoundGetsItWithASeedToo) {
  proto_.set_seed(7);
  proto_.set_auto_num_speculative_tokens(true);
  EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kAuto);
}

// Control may have learned from another stream of the same seed.
TEST_F(GenerationRequestTest, WhoLeavesTheChoiceToControlFlipsCoinsOfItsOwn) {
  proto_.set_seed(7);
  proto_.set_temperature(1);
  EXPECT_EQ(Parsed().seed, 7u);
  proto_.set_schedule(v1::SCHEDULE_AUTO);
  EXPECT_NE(Parsed().seed, 7u);
  proto_.set_schedule(v1::SCHEDULE_PREDRAFT);
  EXPECT_EQ(Parsed().seed, 7u);
  proto_.set_auto_num_speculative_tokens(true);
  EXPECT_NE(Parsed().seed, 7u);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_BLOCK);
  EXPECT_NE(Parsed().seed, 7u);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_COUPLED);
  EXPECT_EQ(Parsed().seed, 7u);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_REJECTION);
  proto_.set_temperature(0);
  EXPECT_EQ(Parsed().seed, 7u);
  proto_.set_lossy_lenience(0.5);
  EXPECT_NE(Parsed().seed, 7u);
}

TEST_F(GenerationRequestTest,
       ASeedKeepsTheDrafterInTurnWhereTheTextDependsOnIt) {
  limits_.default_schedule = Schedule::kPredraft;
  EXPECT_EQ(Parsed().schedule, Schedule::kPredraft);
  proto_.set_seed(7);
  EXPECT_EQ(Parsed().schedule, Schedule::kSequential);
  proto_.set_auto_num_speculative_tokens(true);
  EXPECT_EQ(Parsed().schedule, Schedule::kPredraft);
  proto_.set_auto_num_speculative_tokens(false);
  proto_.set_temperature(0);
  EXPECT_EQ(Parsed().schedule, Schedule::kPredraft);
  proto_.set_temperature(1);
  proto_.set_schedule(v1::SCHEDULE_AHEAD);
  EXPECT_EQ(Parsed().schedule, Schedule::kAhead);
}

TEST_F(GenerationRequestTest, AResumeIsDraftedAsOthersAreThoughItNamesASeed) {
  limits_.default_schedule = Schedule::kPredraft;
  limits_.default_draft_length_mode = DraftLengthMode::kAuto;
  proto_.set_seed(7);
  proto_.set_temperature(1);
  proto_.mutable_model()->set_weights_hash("of its stream");
  EXPECT_EQ(Parsed().schedule, Schedule::kPredraft);
  EXPECT_EQ(Parsed().draft_length_mode, DraftLengthMode::kAuto);
  EXPECT_EQ(Parsed().num_speculative_tokens, 16);
}

TEST_F(GenerationRequestTest, AnUnknownScheduleIsRefused) {
  proto_.set_schedule(static_cast<v1::Schedule>(99));
  EXPECT_THAT(
      ParseRequest(proto_, limits_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("schedule 99")));
}

TEST_F(GenerationRequestTest, ASupportSizeAloneMeansNoMass) {
  proto_.mutable_draft_options()->set_support_size(32);
  EXPECT_EQ(Parsed().draft_options.support_size, 32);
  EXPECT_EQ(Parsed().draft_options.support_mass, 1);
  proto_.mutable_draft_options()->set_support_mass(0.5);
  EXPECT_EQ(Parsed().draft_options.support_size, 32);
  EXPECT_EQ(Parsed().draft_options.support_mass, 0.5);
  proto_.mutable_draft_options()->clear_support_size();
  EXPECT_EQ(Parsed().draft_options.support_size, kMaxSupportSize);
}

TEST_F(GenerationRequestTest, ATextThatCanHaveNoRoomIsNotTokenised) {
  const PairTokenizer tokenizer;
  limits_.tokenizer = &tokenizer;
  proto_.set_text(std::string(2 * 99, 'a'));
  EXPECT_EQ(Parsed().prompt.size(), 99u);
  EXPECT_EQ(tokenizer.num_texts, 1);
  proto_.set_text(std::string(1 << 20, 'a'));
  EXPECT_THAT(ParseRequest(proto_, limits_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the prompt has at least 524288 tokens; the "
                                 "model's context of 100 leaves no room")));
  EXPECT_THAT(Why(), Optional<std::string>(kContextLengthExceededReason));
  EXPECT_THAT(WhyMetadata(),
              UnorderedElementsAre(Pair("context_length", "100"),
                                   Pair("least_num_tokens", "524288")));
  EXPECT_EQ(tokenizer.num_texts, 1);
}

TEST_F(GenerationRequestTest, StopTokensAreOfTheVocabularyAndAreFew) {
  proto_.set_ignore_eos(true);
  for (int i = 0; i < 64; ++i) proto_.add_stop_token_ids(kVocabSize - 1);
  EXPECT_EQ(Parsed().stop_token_ids, TokenSeq(64, kVocabSize - 1));
  EXPECT_TRUE(Parsed().eos_ids.empty());
  proto_.add_stop_token_ids(1);
  EXPECT_THAT(Refusal(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 64 stop_token_ids, not 65")));
  proto_.clear_stop_token_ids();
  proto_.add_stop_token_ids(kVocabSize);
  EXPECT_THAT(Refusal(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop_token_ids: token id 5000 is outside "
                                 "the vocabulary [0, 5000)")));
}

TEST_F(GenerationRequestTest, ASaltHasAnEnd) {
  proto_.set_cache_salt(std::string(256, 's'));
  EXPECT_EQ(Parsed().cache_salt, proto_.cache_salt());
  proto_.set_cache_salt(std::string(257, 's'));
  EXPECT_THAT(
      ParseRequest(proto_, limits_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cache_salt")));
}

TEST_F(GenerationRequestTest, WholeRowsAreOfTheVocabularysSize) {
  proto_.mutable_draft_options()->set_support_size(kVocabSize);
  EXPECT_EQ(Parsed().draft_options.support_size, kVocabSize);
  proto_.mutable_draft_options()->clear_support_size();
  limits_.default_draft_options.support_size = 0;
  EXPECT_EQ(Parsed().draft_options.support_size, kVocabSize);
  EXPECT_EQ(Parsed().draft_options.support_mass, 1);
  for (const int size : {0, kMaxSupportSize + 1, kVocabSize + 1}) {
    proto_.mutable_draft_options()->set_support_size(size);
    EXPECT_THAT(ParseRequest(proto_, limits_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.support_size")));
  }
}

TEST_F(GenerationRequestTest, TheReplyFormatIsTheThinnestThatIsServed) {
  for (const auto rule :
       {v1::ACCEPTANCE_RULE_REJECTION, v1::ACCEPTANCE_RULE_BLOCK,
        v1::ACCEPTANCE_RULE_COUPLED}) {
    EXPECT_EQ(FormatOf(rule, 1), ReplyFormat::kTokens);
    EXPECT_EQ(FormatOf(rule, 0), ReplyFormat::kTokens);
  }
  // A coordinator's default does not go with every rule.
  limits_.default_reply_format = ReplyFormat::kSparse;
  EXPECT_EQ(FormatOf(v1::ACCEPTANCE_RULE_REJECTION, 0), ReplyFormat::kSparse);
  EXPECT_EQ(FormatOf(v1::ACCEPTANCE_RULE_COUPLED, 1), ReplyFormat::kTokens);
  // It is SPARSE without TOKENS, where the rule allows that.
  limits_.default_reply_format.reset();
  limits_.reply_formats = {ReplyFormat::kFull, ReplyFormat::kSparse};
  EXPECT_EQ(FormatOf(v1::ACCEPTANCE_RULE_BLOCK, 1), ReplyFormat::kSparse);
  EXPECT_EQ(FormatOf(v1::ACCEPTANCE_RULE_COUPLED, 1), ReplyFormat::kFull);
  // A verifier may have whole rows only.
  limits_.reply_formats = {ReplyFormat::kFull};
  EXPECT_EQ(FormatOf(v1::ACCEPTANCE_RULE_COUPLED, 1), ReplyFormat::kFull);
}

TEST_F(GenerationRequestTest, WhatTheVerifierDoesNotServeIsRefused) {
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  proto_.set_reply_format(v1::REPLY_FORMAT_FULL_BFLOAT16);
  EXPECT_THAT(Refusal(), StatusIs(kRefused, HasSubstr("reply_format")));
  EXPECT_THAT(Why(), Optional<std::string>(kNotServedReason));
  EXPECT_THAT(WhyMetadata(), ElementsAre(Pair("field", "reply_format")));
  proto_.clear_reply_format();
  limits_.default_reply_format = ReplyFormat::kFullBFloat16;
  EXPECT_THAT(Refusal(), StatusIs(kRefused, HasSubstr("--reply-format")));
  EXPECT_THAT(Why(), Optional<std::string>(kCoordinatorFlagsReason));
  limits_.default_reply_format.reset();
  limits_.rules = {RuleKind::kRejection};
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_BLOCK);
  EXPECT_THAT(Refusal(), StatusIs(kRefused, HasSubstr("acceptance_rule")));
  EXPECT_THAT(Why(), Optional<std::string>(kNotServedReason));
  EXPECT_THAT(WhyMetadata(), ElementsAre(Pair("field", "acceptance_rule")));
}

TEST_F(GenerationRequestTest, AValueThatIsWrongHasItsFieldsName) {
  const std::pair<std::string, void (*)(v1::GenerateRequest&)> spoilt[] = {
      {"prompt", [](auto& r) { r.mutable_tokens()->add_ids(kVocabSize); }},
      {"prompt", [](auto& r) { r.mutable_tokens()->clear_ids(); }},
      {"prompt", [](auto& r) { r.set_text("without a tokenizer"); }},
      {"temperature", [](auto& r) { r.set_temperature(11); }},
      {"top_k", [](auto& r) { r.set_top_k(-1); }},
      {"repetition_penalty", [](auto& r) { r.set_repetition_penalty(0); }},
      {"logit_bias", [](auto& r) { r.add_logit_bias()->set_id(kVocabSize); }},
      {"logit_bias", [](auto& r) { r.add_logit_bias()->set_bias(101); }},
      {"logprobs", [](auto& r) { r.set_logprobs(21); }},
      {"logprobs_mode",
       [](auto& r) { r.set_logprobs_mode(v1::LogprobsMode(3)); }},
      {"stop_strings", [](auto& r) { r.add_stop_strings("a"); }},
      {"stop_token_ids", [](auto& r) { r.add_stop_token_ids(kVocabSize); }},
      {"max_tokens", [](auto& r) { r.set_max_tokens(0); }},
      {"draft_options",
       [](auto& r) { r.mutable_draft_options()->set_support_mass(2); }},
      {"acceptance_rule",
       [](auto& r) { r.set_acceptance_rule(v1::ACCEPTANCE_RULE_GREEDY); }},
      {"num_speculative_tokens",
       [](auto& r) { r.set_num_speculative_tokens(17); }},
      {"schedule", [](auto& r) { r.set_schedule(v1::Schedule(99)); }},
      {"reply_format",
       [](auto& r) { r.set_reply_format(v1::ReplyFormat(99)); }},
      {"cache_salt", [](auto& r) { r.set_cache_salt(std::string(257, 's')); }},
      {"seed", [](auto& r) { r.mutable_delivered()->add_ids(1); }},
      {"delivered",
       [](auto& r) { r.mutable_delivered()->add_ids(kVocabSize); }}};
  const v1::GenerateRequest good = proto_;
  for (const auto& [field, spoil] : spoilt) {
    proto_ = good;
    spoil(proto_);
    EXPECT_THAT(Refusal(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(Why(), Optional<std::string>(kInvalidValueReason));
    EXPECT_THAT(WhyMetadata(), ElementsAre(Pair("field", field)));
  }
}

TEST_F(GenerationRequestTest, OnlyRejectionKnowsALenience) {
  proto_.set_temperature(0);
  proto_.set_lossy_lenience(0.5);
  EXPECT_EQ(Parsed().sampling.lossy_lenience, 0.5);
  for (const v1::AcceptanceRule rule :
       {v1::ACCEPTANCE_RULE_GREEDY, v1::ACCEPTANCE_RULE_BLOCK,
        v1::ACCEPTANCE_RULE_COUPLED}) {
    proto_.set_acceptance_rule(rule);
    EXPECT_THAT(ParseRequest(proto_, limits_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("lossy_lenience")));
  }
}

TEST_F(GenerationRequestTest, AResumeNeedsItsSeedItsModelAndItsTokensRoom) {
  proto_.set_max_tokens(3);
  for (const int id : {1, 2, 3}) proto_.mutable_delivered()->add_ids(id);
  EXPECT_THAT(ParseRequest(proto_, limits_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("seed")));
  proto_.set_seed(9);
  EXPECT_THAT(ParseRequest(proto_, limits_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model")));
  EXPECT_THAT(WhyMetadata(), ElementsAre(Pair("field", "model")));
  proto_.mutable_model()->set_weights_hash("A");
  EXPECT_THAT(Parsed().delivered, ElementsAre(1, 2, 3));
  EXPECT_EQ(Parsed().max_length, 5);
  proto_.mutable_delivered()->add_ids(4);
  EXPECT_THAT(Refusal(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("4 delivered tokens")));
  proto_.mutable_delivered()->set_ids(0, 9999);
  EXPECT_THAT(Refusal(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("token id 9999")));
}

// Control has learned from the rounds whose tokens were lost.
TEST_F(GenerationRequestTest, AResumeWithKByRoundFlipsCoinsOfItsOwn) {
  proto_.mutable_delivered()->add_ids(1);
  proto_.mutable_model()->set_weights_hash("A");
  proto_.set_seed(9);
  proto_.set_temperature(1);
  proto_.set_auto_num_speculative_tokens(true);
  EXPECT_NE(Parsed().seed, 9u);
  // It is so where all that had come was which model it is, too.
  proto_.clear_delivered();
  EXPECT_NE(Parsed().seed, 9u);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_COUPLED);
  EXPECT_EQ(Parsed().seed, 9u);
}

// Control keeps a fixed number, or has none drafted.
TEST_F(GenerationRequestTest, AResumeWithAFixedKFlipsCoinsOfItsOwn) {
  proto_.mutable_delivered()->add_ids(1);
  proto_.mutable_model()->set_weights_hash("A");
  proto_.set_seed(9);
  proto_.set_temperature(1);
  proto_.set_num_speculative_tokens(4);
  EXPECT_NE(Parsed().seed, 9u);
  proto_.set_num_speculative_tokens(0);
  EXPECT_EQ(Parsed().seed, 9u);
  proto_.set_num_speculative_tokens(4);
  proto_.set_temperature(0);
  EXPECT_EQ(Parsed().seed, 9u);
}

TEST_F(GenerationRequestTest, ATextEndsWhereTheVerifiersMemoryDoes) {
  limits_.longest_text = 40;
  EXPECT_EQ(Parsed().max_length, 40);
  proto_.set_max_tokens(60);
  EXPECT_EQ(Parsed().max_length, 40);
}

// A verifier with more memory may be back in a moment, or be elsewhere.
TEST_F(GenerationRequestTest, APromptWithinTheContextGoesWhereThereIsMemory) {
  limits_.longest_text = 40;
  const auto is_outgrown =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("that are ready have memory for 40"));
  for (int i = 2; i < 39; ++i) proto_.mutable_tokens()->add_ids(7);
  EXPECT_EQ(Parsed().prompt.size(), 39u);
  for (int length = 40; length < 100; ++length) {
    proto_.mutable_tokens()->add_ids(7);
    EXPECT_THAT(ParseRequest(proto_, limits_), is_outgrown) << length;
  }
  proto_.mutable_tokens()->add_ids(7);
  EXPECT_THAT(
      ParseRequest(proto_, limits_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the prompt has 100 tokens; the model's context")));
  EXPECT_THAT(Why(), Optional<std::string>(kContextLengthExceededReason));
  EXPECT_THAT(WhyMetadata(), UnorderedElementsAre(Pair("context_length", "100"),
                                                  Pair("num_tokens", "100")));
  const PairTokenizer tokenizer;
  limits_.tokenizer = &tokenizer;
  proto_.set_text(std::string(2 * 99, 'a'));
  EXPECT_THAT(ParseRequest(proto_, limits_), is_outgrown);
  EXPECT_THAT(Why(), Optional<std::string>(kOutOfKvMemoryReason));
  EXPECT_EQ(tokenizer.num_texts, 0);
}

TEST_F(GenerationRequestTest, AResumeThatNeedsMoreMemoryGoesElsewhere) {
  limits_.longest_text = 40;
  proto_.set_seed(9);
  proto_.mutable_model()->set_weights_hash("A");
  for (int i = 0; i < 50; ++i) proto_.mutable_delivered()->add_ids(1);
  EXPECT_THAT(ParseRequest(proto_, limits_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("have memory for 40")));
}

// Those with more may only not be ready at this moment.
TEST_F(GenerationRequestTest, AResumeEndsNoSoonerAsTheReadyHaveLessMemory) {
  limits_.longest_text = 40;
  proto_.set_seed(9);
  proto_.mutable_model()->set_weights_hash("A");
  proto_.mutable_delivered()->add_ids(1);
  EXPECT_EQ(Parsed().max_length, 100);
  proto_.set_max_tokens(60);
  EXPECT_EQ(Parsed().max_length, 62);
  proto_.set_max_tokens(600);
  EXPECT_EQ(Parsed().max_length, 100);
}

TEST_F(GenerationRequestTest, WhatIsPromisedOfAResumeFollowsFromItsSampling) {
  EXPECT_EQ(WantedModelOf(proto_), std::nullopt);
  proto_.mutable_model()->set_weights_hash("A");
  proto_.mutable_model()->set_numerics("avx2");
  EXPECT_EQ(WantedModelOf(proto_)->model,
            (ModelIdentity{.weights_hash = "A", .numerics = "avx2"}));
  EXPECT_EQ(WantedModelOf(proto_)->sameness, Sameness::kLaw);
  proto_.set_temperature(0);
  EXPECT_EQ(WantedModelOf(proto_)->sameness, Sameness::kBits);
  proto_.set_temperature(1);
  proto_.set_acceptance_rule(v1::ACCEPTANCE_RULE_COUPLED);
  EXPECT_EQ(WantedModelOf(proto_)->sameness, Sameness::kBits);
}

}  // namespace
}  // namespace outrider
