// SPDX-License-Identifier: Apache-2.0
#include "core/wire/message_limits.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "core/sampling/random_source.h"
#include "core/wire/convert.h"
#include "core/wire/reply_codec.h"

namespace outrider {
namespace {

constexpr uint64_t kLarge = std::numeric_limits<uint64_t>::max();
constexpr Id128 kId = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8}};

constexpr int kNumOutcomes = 2;

// A model, and the largest messages that it can call for.
class Largest {
 public:
  Largest(int vocab_size, int num_drafts, int context_length)
      : vocab_size_(vocab_size),
        num_drafts_(num_drafts),
        context_length_(context_length),
        ids_(vocab_size) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }

  NodeDescription Node() const {
    return {.vocab_size = vocab_size_,
            .context_length = context_length_,
            .max_draft_tokens = num_drafts_,
            .max_outcomes = kNumOutcomes};
  }

  int64_t DraftRequest() const {
    const DraftCall call = {.header = Header(),
                            .max_draft_tokens = num_drafts_,
                            .options = {.support_size = vocab_size_,
                                        .support_mass = 0.5,
                                        .min_draft_probability = 0.5,
                                        .round_weights = false},
                            .sampling = Sampling(),
                            .seed = kLarge,
                            .prompt_length = context_length_,
                            .in_flight_tokens = TokenSeq(num_drafts_, 7),
                            .max_outcomes = kNumOutcomes,
                            .acceptance = 0.5};
    return Size(ToProto(call));
  }

  int64_t DraftResponse(bool is_rounded) const {
    v1::DraftResponse response;
    const std::vector<OutcomeDraft> outcomes(kNumOutcomes,
                                             {.num_accepted = num_drafts_,
                                              .next_token = vocab_size_ - 1,
                                              .draft = DraftOf(is_rounded)});
    ToProto(DraftReply{.header = Echo(), .outcomes = outcomes}, response);
    return Size(response);
  }

  int64_t VerifyRequest(ReplyFormat format) const {
    return Size(ToProto(Call(format)));
  }

  int64_t VerifyResponse(ReplyFormat format) const {
    const VerifyCall call = Call(format);
    VerifyReply reply = {.header = Echo(),
                         .is_bfloat16 = format == ReplyFormat::kFullBFloat16};
    if (format == ReplyFormat::kSparse) {
      std::vector<TargetRow> rows(num_drafts_, Row());
      rows.push_back(*TargetRow::FromParts({}, {}, 1, 7));
      reply.outcome = rows;
      reply.logprobs.assign(num_drafts_ + 1, Scores(vocab_size_));
    } else if (format == ReplyFormat::kTokens) {
      reply.outcome = Verdict{num_drafts_, vocab_size_ - 1};
      reply.logprobs.assign(num_drafts_ + 1, Scores(1));
    } else {
      reply.outcome = LogitRows::FromVector(
          std::vector<float>(static_cast<size_t>(num_drafts_ + 1) *
                             vocab_size_),
          vocab_size_);
    }
    v1::VerifyResponse response;
    ToProto(reply, response);
    return Size(response);
  }

 private:
  static int64_t Size(const google::protobuf::MessageLite& message) {
    return static_cast<int64_t>(message.ByteSizeLong());
  }

  RequestHeader Header() const {
    return {.session = kId,
            .incarnation = kId,
            .step = kLarge,
            .delta = {.append_tokens = TokenSeq(context_length_, 7)},
            .prefix_hash = kLarge,
            .cache_salt = std::string(kMaxCacheSaltBytes, 's')};
  }
  ReplyHeader Echo() const {
    return {.session = kId,
            .incarnation = kId,
            .step = kLarge,
            .cached_length = context_length_,
            .compute_seconds = 1e6 + 1e-9,
            .own_seconds = 1e6 + 1e-9,
            .queue_seconds = 1e6 + 1e-9,
            .next_reprefill_in = -1e6 - 1e-9};
  }
  SamplingParams Sampling() const {
    return {.temperature = 0.7,
            .top_k = vocab_size_,
            .top_p = 0.9,
            .min_p = 0.1,
            .repetition_penalty = 1.1,
            .presence_penalty = 0.1,
            .frequency_penalty = 0.1,
            .logit_bias = std::vector<LogitBias>(
                kMaxLogitBiases, {.id = vocab_size_ - 1, .bias = 0.1})};
  }
  Draft DraftOf(bool is_rounded) const {
    // One third is no number of bfloat16's.
    const std::vector<double> weights(vocab_size_, is_rounded ? 0.5 : 1.0 / 3);
    return {.tokens = TokenSeq(num_drafts_, 0),
            .distributions = std::vector<Distribution>(
                num_drafts_, Distribution::FromSorted(ids_, weights)),
            .confidences = std::vector<float>(num_drafts_, 0.5F)};
  }
  VerifyCall Call(ReplyFormat format) const {
    VerifyCall call = {.header = Header(),
                       .draft_tokens = TokenSeq(num_drafts_, 0),
                       .reply_format = format,
                       .sampling = Sampling(),
                       .seed = kLarge,
                       .prompt_length = context_length_,
                       .logprobs = LogprobsOptions{.num_top = kMaxTopLogprobs}};
    CodecOf(format).Ask(DraftOf(/*is_rounded=*/false), call);
    return call;
  }
  TargetRow Row() const {
    const std::vector<double> p(vocab_size_, 0.5 / vocab_size_);
    return *TargetRow::FromParts(ids_, p, 0.5, vocab_size_);
  }
  static RowScores Scores(int num_tokens) {
    return {.log_normaliser = 0.1,
            .tokens = std::vector<double>(num_tokens, 0.1),
            .top_ids = TokenSeq(kMaxTopLogprobs, 1),
            .top_scores = std::vector<double>(kMaxTopLogprobs, 0.1)};
  }

  const int vocab_size_;
  const int num_drafts_;
  const int context_length_;
  TokenSeq ids_;
};

struct Model {
  int vocab_size = 0;
  int num_drafts = 0;
  int context_length = 0;
};
constexpr Model kModels[] = {{65, 16, 256},       {50257, 4, 1024},
                             {128256, 1, 262144}, {128256, 3, 131072},
                             {152064, 16, 32768}, {152064, 0, 1048576},
                             {256000, 8, 262144}};

TEST(MessageLimitsTest, HoldEveryMessageThatTheModelCanCallFor) {
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.vocab_size);
    const Largest largest(model.vocab_size, model.num_drafts,
                          model.context_length);
    const MessageLimits limits = LimitsOf(largest.Node());
    EXPECT_LE(largest.DraftRequest(), limits.draft_request);
    for (const bool is_rounded : {false, true}) {
      EXPECT_LE(largest.DraftResponse(is_rounded), limits.draft_response);
    }
    for (const ReplyFormat format : kReplyFormats) {
      EXPECT_LE(largest.VerifyRequest(format), limits.verify_request);
      EXPECT_LE(largest.VerifyResponse(format), limits.verify_response);
    }
  }
}

TEST(MessageLimitsTest, AreNotMuchMoreThanTheLargestMessages) {
  constexpr int64_t kSlack = 128 << 10;
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.vocab_size);
    const Largest largest(model.vocab_size, model.num_drafts,
                          model.context_length);
    const MessageLimits limits = LimitsOf(largest.Node());
    EXPECT_GE(largest.DraftRequest() + kSlack, limits.draft_request);
    EXPECT_GE(largest.DraftResponse(/*is_rounded=*/false) + kSlack,
              limits.draft_response);
    EXPECT_GE(largest.VerifyRequest(ReplyFormat::kTokens) + kSlack,
              limits.verify_request);
    // The last row of SPARSE has no support.
    const int64_t last_row = int64_t{16} * model.vocab_size;
    EXPECT_GE(largest.VerifyResponse(ReplyFormat::kSparse) + last_row + kSlack,
              limits.verify_response);
  }
}

TEST(MessageLimitsTest, AreWhatProtobufCanCarry) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const MessageLimits limits = LimitsOf(
      {.vocab_size = kMost, .context_length = kMost, .max_draft_tokens = 1024});
  EXPECT_EQ(limits.verify_request, kMost);
  EXPECT_EQ(limits.verify_response, kMost);
  // A drafter without a model has no end of its context.
  EXPECT_LT(limits.draft_request, 32 << 20);
}

// Found by tests/fuzz: products beyond 64 bits, and -1, which is no limit.
TEST(MessageLimitsTest, AreLimitsWhateverANodeSaysOfItself) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int number : {-1, std::numeric_limits<int>::min(), kMost}) {
    const MessageLimits limits = LimitsOf({.vocab_size = number,
                                           .context_length = number,
                                           .max_draft_tokens = number,
                                           .max_outcomes = number});
    for (const int limit : {limits.draft_request, limits.draft_response,
                            limits.verify_request, limits.verify_response}) {
      EXPECT_GT(limit, 0) << number;
    }
  }
}

}  // namespace
}  // namespace outrider
