// SPDX-License-Identifier: Apache-2.0
#include "verifier/verify_engine.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/coins.h"
#include "core/session/check_tokens.h"
#include "core/wire/reply_codec.h"

namespace outrider {
namespace {

// Tokens that the call caches beside its delta: the last one that it draws is
// not run.
size_t NumCached(const VerifyCall& call) {
  return call.draft_tokens.size() + call.max_more_tokens;
}

}  // namespace

class VerifyEngine::VerifyWork final : public CallWork {
 public:
  VerifyWork(VerifyCall call, Request request, Done done,
             const VerifyEngine& engine)
      : CallWork(std::move(call), std::move(request), std::move(done)),
        engine_(engine),
        has_history_(engine.options_.model_answers &&
                     LooksAtText(this->call().sampling)),
        tokens_(this->call().header.delta.append_tokens) {
    const std::vector<TokenId>& drafts = this->call().draft_tokens;
    tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
  }

  Want Start() override {
    if (has_history_) history_ = TextOfDelta();
    return NextWant();
  }

  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override {
    absl::StatusOr<VerifyReply> answer =
        engine_.Answer(call(), rows[0], log().tokens().first(length()));
    if (!answer.ok() && num_passes_ == 0) return answer.status();
    // What was drawn before it stands, and the next call meets the same.
    is_doubtful_ = !answer.ok();
    if (!answer.ok() || !GoesOnAfter(*std::move(answer))) {
      SetReply(std::move(reply_));
      return std::nullopt;
    }
    tokens_ = {LastToken()};
    if (OUTRIDER_MUTANT(R2, has_history_, false)) {
      history_.push_back(LastToken());
    }
    return NextWant();
  }

  bool is_doubtful() const override { return is_doubtful_; }

 private:
  // Tokens before the next rows, or before the drafts.
  size_t length() const {
    return num_committed() + OUTRIDER_MUTANT(R1, num_passes_, 0);
  }

  Want NextWant() {
    questions_ =
        engine_.QuestionsOf(call(), {.length = length(), .tokens = history_});
    return {.tokens = tokens_,
            .num_rows = static_cast<int>(call().draft_tokens.size()) + 1,
            .is_last = num_passes_ == call().max_more_tokens,
            .stays = num_passes_ < call().max_more_tokens,
            .questions = questions_};
  }

  // Takes a pass into the reply. True: the verifier goes on by itself.
  bool GoesOnAfter(VerifyReply answer) {
    if (++num_passes_ == 1) {
      reply_ = std::move(answer);
    } else {
      reply_.more_tokens.push_back(TokenOf(answer));
      std::move(answer.logprobs.begin(), answer.logprobs.end(),
                std::back_inserter(reply_.logprobs));
    }
    return num_passes_ <= call().max_more_tokens &&
           !absl::c_linear_search(call().end_tokens, LastToken());
  }
  static TokenId TokenOf(const VerifyReply& answer) {
    return std::get<Verdict>(answer.outcome).next_token;
  }
  TokenId LastToken() const {
    return reply_.more_tokens.empty() ? TokenOf(reply_)
                                      : reply_.more_tokens.back();
  }

  const VerifyEngine& engine_;
  const bool has_history_;              // questions look at it
  std::vector<TokenId> tokens_;         // that the next pass runs
  std::vector<TokenId> history_;        // before its rows
  std::vector<RowQuestion> questions_;  // look at the history
  int num_passes_ = 0;                  // that the reply has rows of
  bool is_doubtful_ = false;            // a row was none
  VerifyReply reply_ = {};
};

absl::Status VerifyEngine::Check(const VerifyCall& call) const {
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  if (num_drafts > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", options_.max_draft_tokens,
                     " draft tokens a round, not ", num_drafts));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckMore(call));
  OUTRIDER_RETURN_IF_ERROR(CheckDelta(call.header.delta, options_.vocab_size,
                                      options_.context_length,
                                      NumCached(call)));
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(call.draft_tokens, options_.vocab_size));
  return CodecOf(call.reply_format).Check(call, options_.vocab_size);
}

absl::Status VerifyEngine::CheckMore(const VerifyCall& call) const {
  if (call.max_more_tokens == 0) return absl::OkStatus();
  if (call.max_more_tokens < 0 ||
      call.max_more_tokens > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_more_tokens must be between 0 and ", options_.max_draft_tokens,
        ", not ", call.max_more_tokens));
  }
  if (!call.draft_tokens.empty() || !CodecOf(call.reply_format).GoesOn()) {
    return absl::InvalidArgumentError(
        "max_more_tokens needs reply_format TOKENS and no draft_tokens: what "
        "comes after drafts or rows is not known here");
  }
  if (call.end_tokens.size() > kMaxEndTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("end_tokens must be at most ", kMaxEndTokens, ", not ",
                     call.end_tokens.size()));
  }
  return absl::OkStatus();
}

std::unique_ptr<Work> VerifyEngine::MakeWork(VerifyCall call,
                                             uint64_t content_digest,
                                             std::function<bool()> is_cancelled,
                                             CallWork::Done done) const {
  Work::Request request = {
      .header = call.header,
      .content_digest = content_digest,
      .num_draft_tokens = static_cast<int>(NumCached(call)),
      .is_cancelled = std::move(is_cancelled),
      .holds_up_stream = HasBegun(call.header, call.prompt_length)};
  return std::make_unique<VerifyWork>(std::move(call), std::move(request),
                                      std::move(done), *this);
}

std::vector<RowQuestion> VerifyEngine::QuestionsOf(
    const VerifyCall& call, const ReplyCodec::Before& before) const {
  if (!options_.model_answers) return {};
  // A test's own chance is no coins of a seed.
  const auto seed = options_.random_source ? std::optional<uint64_t>()
                                           : std::optional(call.seed);
  return CodecOf(call.reply_format)
      .QuestionsOf(call, before, seed, options_.vocab_size);
}

absl::StatusOr<VerifyReply> VerifyEngine::Answer(
    const VerifyCall& call, const LogitRows& rows,
    absl::Span<const TokenId> committed) const {
  const std::unique_ptr<RandomSource> random =
      options_.random_source ? options_.random_source(call.seed)
                             : std::make_unique<Coins>(call.seed);
  return CodecOf(call.reply_format)
      .Answer(call, rows.WithVocabSize(options_.vocab_size), committed,
              *random);
}

}  // namespace outrider
