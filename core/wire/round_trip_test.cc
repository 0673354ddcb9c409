// SPDX-License-Identifier: Apache-2.0
// What goes over the wire comes back as it was, to the last bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "core/wire/digest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int kVocabSize = 100;
constexpr Id128 kSession = {.bytes = {1, 2, 3}};
constexpr Id128 kLife = {.bytes = {4, 5, 6}};

DraftCall ADraftCall() {
  return {.header = {.session = kSession,
                     .incarnation = kLife,
                     .step = 7,
                     .delta = {.keep_length = 2, .append_tokens = {8, 9}},
                     .prefix_hash = 10},
          .max_draft_tokens = 3,
          .seed = 11,
          .prompt_length = 2};
}

absl::StatusOr<DraftReply> Returned(const DraftReply& reply,
                                    const DraftCall& call) {
  v1::DraftResponse response;
  ToProto(reply, response);
  return FromProto(response, call, kVocabSize);
}
DraftReply Returned(const DraftReply& reply) {
  return Returned(reply, ADraftCall()).value();
}

DraftReply ReplyOf(Draft draft) {
  return {.header = {.session = kSession,
                     .incarnation = kLife,
                     .step = 7,
                     .cached_length = 6,
                     .compute_seconds = 0.25,
                     .own_seconds = 0.125,
                     .queue_seconds = 0.0625,
                     .next_reprefill_in = -0.5,
                     .reused_length = 3,
                     .is_draining = true},
          .outcome = std::move(draft)};
}

TEST(RoundTripTest, EachDraftOptionArrives) {
  for (const DraftOptions& options : std::vector<DraftOptions>{
           {},
           {.support_size = 1},
           {.support_size = kVocabSize, .round_weights = false},
           {.support_mass = 0.1},
           {.min_draft_probability = 0.1}}) {
    DraftCall call = ADraftCall();
    call.options = options;
    const auto returned = FromProto(ToProto(call));
    ASSERT_THAT(returned, IsOk());
    EXPECT_EQ(returned->options, options);
  }
}

TEST(RoundTripTest, HowSureTheDrafterWasArrivesAndNothingElseDoes) {
  const auto read = [&](std::vector<float> confidences) {
    Draft draft = Draft::OneHot(/*start=*/4, {1, 2});
    draft.confidences = std::move(confidences);
    return Returned(ReplyOf(std::move(draft)), ADraftCall());
  };
  for (const std::vector<float>& confidences :
       {std::vector<float>{}, {0.75f, 1.0f}}) {
    const auto returned = read(confidences);
    ASSERT_THAT(returned, IsOk());
    EXPECT_EQ(std::get<Draft>(returned->outcome).confidences, confidences);
  }
  for (const std::vector<float>& confidences :
       {std::vector<float>{0.5f},
        {0.5f, 0.0f},
        {0.5f, 1.5f},
        {0.5f, std::numeric_limits<float>::quiet_NaN()}}) {
    EXPECT_THAT(
        read(confidences).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("confidences")));
  }
}

TEST(RoundTripTest, TheSaltArrivesAndALongerOneThanAllowedIsRefused) {
  DraftCall call = ADraftCall();
  call.header.cache_salt = std::string(kMaxCacheSaltBytes, 's');
  const auto returned = FromProto(ToProto(call));
  ASSERT_THAT(returned, IsOk());
  EXPECT_EQ(returned->header.cache_salt, call.header.cache_salt);
  call.header.cache_salt += 's';
  EXPECT_THAT(FromProto(ToProto(call)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Found by tests/fuzz: 16 zero bytes were taken for an id, and sent as none.
TEST(RoundTripTest, AnIdOfZeroBytesIsRefused) {
  const v1::DraftRequest good = ToProto(ADraftCall());
  const std::string zeros(16, '\0');
  v1::DraftRequest no_session = good;
  no_session.mutable_header()->set_session_id(zeros);
  EXPECT_THAT(FromProto(no_session),
              StatusIs(absl::StatusCode::kInvalidArgument));
  v1::DraftRequest no_life = good;
  no_life.mutable_header()->set_incarnation(zeros);
  EXPECT_THAT(FromProto(no_life), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RoundTripTest, ADraftsRowsAreThoseThatItWasDrawnFrom) {
  const Distribution exact =
      Distribution::FromSorted({3, 5, 7}, {1.0 / 3, 1.0 / 7, 11.0 / 21});
  for (const Distribution& row :
       {exact, Distribution(exact).RoundedToBFloat16()}) {
    const DraftReply returned = Returned(
        ReplyOf({.start = 4, .tokens = {5, 7}, .distributions = {row, row}}));
    const Draft& draft = std::get<Draft>(returned.outcome);
    EXPECT_THAT(draft.tokens, ElementsAreArray({5, 7}));
    ASSERT_EQ(draft.distributions.size(), 2u);
    for (const Distribution& q : draft.distributions) {
      EXPECT_THAT(q.support(), ElementsAreArray(row.support()));
      EXPECT_THAT(q.weights(), ElementsAreArray(row.weights()));
    }
  }
}

TEST(RoundTripTest, AReplySaysWhatComputedItWhereTheNodeSaysSo) {
  const ModelIdentity model = {
      .weights_hash = "weights", .dtype = "float32", .numerics = "avx2"};
  v1::DraftResponse drafted;
  ToProto(ReplyOf(Draft::None(4)), drafted);
  EXPECT_EQ(FromProto(drafted, ADraftCall(), kVocabSize)->model, std::nullopt);
  *drafted.mutable_header()->mutable_model() = ToProto(model);
  EXPECT_EQ(FromProto(drafted, ADraftCall(), kVocabSize)->model, model);
  v1::VerifyResponse verified;
  ToProto(VerifyReply{.outcome = Verdict{}}, verified);
  EXPECT_EQ(FromProto(verified, VerifyCall())->model, std::nullopt);
  *verified.mutable_header()->mutable_model() = ToProto(model);
  EXPECT_EQ(FromProto(verified, VerifyCall())->model, model);
}

TEST(RoundTripTest, RowsOfOneTokenAreNotSentAndComeBack) {
  const DraftReply returned = Returned(ReplyOf(Draft::OneHot(4, {5, 7})));
  const Draft& draft = std::get<Draft>(returned.outcome);
  ASSERT_EQ(draft.distributions.size(), 2u);
  EXPECT_EQ(draft.distributions[1](7), 1);
  EXPECT_EQ(returned.header.cached_length, 6);
  EXPECT_EQ(returned.header.compute_seconds, 0.25);
  EXPECT_EQ(returned.header.own_seconds, 0.125);
  EXPECT_EQ(returned.header.queue_seconds, 0.0625);
  EXPECT_EQ(returned.header.next_reprefill_in, -0.5);
  EXPECT_EQ(returned.header.reused_length, 3);
  EXPECT_TRUE(returned.header.is_draining);
}

// Three drafts in flight after four tokens, and drafts for two outcomes.
DraftCall ACallWithDraftsInFlight() {
  DraftCall call = ADraftCall();
  call.in_flight_tokens = {5, 6, 7};
  call.max_outcomes = 2;
  call.acceptance = 0.75;
  return call;
}

TEST(RoundTripTest, DraftsInFlightArriveWithWhatIsToBeKnownOfThem) {
  const DraftCall call = ACallWithDraftsInFlight();
  const auto returned = FromProto(ToProto(call));
  ASSERT_THAT(returned, IsOk());
  EXPECT_EQ(returned->in_flight_tokens, call.in_flight_tokens);
  EXPECT_EQ(returned->max_outcomes, call.max_outcomes);
  EXPECT_EQ(returned->acceptance, call.acceptance);
}

TEST(RoundTripTest, DraftsInFlightForNoOutcomeAndNoProbabilityAreRefused) {
  DraftCall none = ACallWithDraftsInFlight();
  none.max_outcomes = 0;
  EXPECT_THAT(FromProto(ToProto(none)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (const double acceptance : {-0.1, 1.1, std::nan("")}) {
    DraftCall call = ACallWithDraftsInFlight();
    call.acceptance = acceptance;
    EXPECT_THAT(FromProto(ToProto(call)),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << acceptance;
  }
}

TEST(RoundTripTest, EachOutcomesDraftBeginsAfterItsNextToken) {
  const Distribution row =
      Distribution::FromSorted({3, 5, 7}, {0.5, 0.25, 0.25});
  DraftReply reply = ReplyOf(Draft::None(4));
  reply.outcomes = {
      {.num_accepted = 3,
       .next_token = 8,
       .draft = {.start = 8, .tokens = {5}, .distributions = {row}}},
      {.num_accepted = 0, .next_token = 9, .draft = Draft::OneHot(5, {7, 8})}};
  const auto returned = Returned(reply, ACallWithDraftsInFlight());
  ASSERT_THAT(returned, IsOk());
  EXPECT_EQ(std::get<Draft>(returned->outcome).length(), 0);
  ASSERT_EQ(returned->outcomes.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const OutcomeDraft& sent = reply.outcomes[i];
    const OutcomeDraft& read = returned->outcomes[i];
    EXPECT_EQ(read.num_accepted, sent.num_accepted);
    EXPECT_EQ(read.next_token, sent.next_token);
    EXPECT_EQ(read.draft.start, sent.draft.start);
    EXPECT_EQ(read.draft.tokens, sent.draft.tokens);
  }
  EXPECT_THAT(returned->outcomes[0].draft.distributions[0].weights(),
              ElementsAreArray(row.weights()));
}

TEST(RoundTripTest, OutcomesThatDraftsInFlightCannotHaveAreRefused) {
  const OutcomeDraft good = {.num_accepted = 1, .next_token = 5};
  std::vector<std::vector<OutcomeDraft>> wrong = {
      {good, good, good},                      // more than asked for
      {{.num_accepted = 4, .next_token = 5}},  // of three in flight
      {{.num_accepted = 1, .next_token = 6}},  // which would stand
      {{.num_accepted = 1, .next_token = kVocabSize}}};
  for (auto& outcomes : wrong) {
    DraftReply reply = ReplyOf(Draft::None(4));
    reply.outcomes = std::move(outcomes);
    EXPECT_THAT(Returned(reply, ACallWithDraftsInFlight()),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  DraftReply unasked = ReplyOf(Draft::None(4));
  unasked.outcomes = {good};
  EXPECT_THAT(Returned(unasked, ADraftCall()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RoundTripTest, ATargetsRowsKeepEveryDigit) {
  const VerifyCall call = {.draft_tokens = {5},
                           .reply_format = ReplyFormat::kSparse,
                           .supports = {{3, 5}}};
  const std::vector<double> p = {1.0 / 3, 1.0 / 7};
  const double tail_mass = 1 - p[0] - p[1];
  VerifyReply reply;
  reply.outcome =
      std::vector<TargetRow>{*TargetRow::FromParts({3, 5}, p, tail_mass, 9),
                             *TargetRow::FromParts({}, {}, 1, 2)};
  v1::VerifyResponse response;
  ToProto(reply, response);
  const auto returned = FromProto(std::move(response), call);
  ASSERT_THAT(returned, IsOk());
  const auto& rows = std::get<std::vector<TargetRow>>(returned->outcome);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].probabilities(), ElementsAreArray(p));
  EXPECT_EQ(rows[0].tail_mass(), tail_mass);
  EXPECT_EQ(rows[0].drawn_token(), 9);
  EXPECT_EQ(rows[1].tail_mass(), 1);
  EXPECT_EQ(rows[1].drawn_token(), 2);
}

// The tail of a support that holds nearly everything.
TEST(RoundTripTest, ATailThatFloat32CannotHoldStays) {
  const double tail_mass = 1e-60;
  VerifyReply reply;
  v1::VerifyResponse response;
  reply.outcome =
      std::vector<TargetRow>{*TargetRow::FromParts({3}, {1.0}, tail_mass, 9),
                             *TargetRow::FromParts({}, {}, 1, 2)};
  ToProto(reply, response);
  const auto returned =
      FromProto(std::move(response), {.draft_tokens = {3},
                                      .reply_format = ReplyFormat::kSparse,
                                      .supports = {{3}}});
  ASSERT_THAT(returned, IsOk());
  const auto& rows = std::get<std::vector<TargetRow>>(returned->outcome);
  EXPECT_EQ(rows[0].tail_mass(), tail_mass);
}

TEST(DigestTest, SeesEveryFieldOfARequest) {
  const VerifyCall call = {
      .header = ADraftCall().header,
      .draft_tokens = {5, 7},
      .reply_format = ReplyFormat::kTokens,
      .draft_rows = {Distribution::FromSorted({3, 5, 6}, {0.25, 0.25, 0.5}),
                     Distribution::FromSorted({6, 7}, {0.5, 0.5})},
      .seed = 11,
      .prompt_length = 2,
      .logprobs = LogprobsOptions{.num_top = 1}};
  const std::vector<std::function<void(VerifyCall&)>> changes = {
      [](VerifyCall&) {},
      [](VerifyCall& c) { ++c.header.step; },
      [](VerifyCall& c) { ++c.header.delta.append_tokens.back(); },
      [](VerifyCall& c) { c.header.cache_salt = "s"; },
      [](VerifyCall& c) { c.draft_tokens.back() = 6; },
      [](VerifyCall& c) { c.reply_format = ReplyFormat::kFull; },
      [](VerifyCall& c) { c.sampling.temperature = 0.5; },
      [](VerifyCall& c) { ++c.seed; },
      [](VerifyCall& c) { ++c.prompt_length; },
      [](VerifyCall& c) {
        c.draft_rows.back() = Distribution::FromSorted({6, 7}, {0.75, 0.25});
      },
      [](VerifyCall& c) { c.rule = RuleKind::kBlock; },
      [](VerifyCall& c) { c.logprobs->num_top = 2; },
      [](VerifyCall& c) { c.max_more_tokens = 1; },
      [](VerifyCall& c) {
        c.max_more_tokens = 1;
        c.end_tokens = {0};
      }};
  std::set<uint64_t> digests;
  for (const auto& change : changes) {
    VerifyCall changed = call;
    change(changed);
    digests.insert(ContentDigest(kSession, ToProto(changed)));
  }
  EXPECT_EQ(digests.size(), changes.size());
  EXPECT_FALSE(digests.contains(ContentDigest(kLife, ToProto(call))));
}

TEST(DigestTest, IsThatOfTheContentHoweverItComes) {
  DraftCall call = ADraftCall();
  const uint64_t digest = ContentDigest(kSession, ToProto(call));
  call.header.is_moved = true;
  const v1::DraftRequest moved = ToProto(call);
  EXPECT_TRUE(moved.header().moved());
  EXPECT_EQ(ContentDigest(kSession, moved), digest);
  const auto returned = FromProto(moved);
  ASSERT_THAT(returned, IsOk());
  EXPECT_TRUE(returned->header.is_moved);
}

}  // namespace
}  // namespace outrider
