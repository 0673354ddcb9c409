// SPDX-License-Identifier: Apache-2.0
#include "verifier/verify_engine.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/coins.h"
#include "core/session/check_tokens.h"
#include "core/wire/reply_codec.h"

namespace outrider {

class VerifyEngine::VerifyWork final : public CallWork {
 public:
  VerifyWork(VerifyCall call, Request request, Done done,
             const VerifyEngine& engine)
      : CallWork(std::move(call), std::move(request), std::move(done)),
        engine_(engine),
        tokens_(this->call().header.delta.append_tokens) {
    const std::vector<TokenId>& drafts = this->call().draft_tokens;
    tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
  }

  Want Start() override {
    questions_ = engine_.QuestionsOf(call(), AdjustedHistory());
    return {.tokens = tokens_,
            .num_rows = static_cast<int>(call().draft_tokens.size()) + 1,
            .is_last = true,
            .questions = questions_};
  }

  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override {
    absl::StatusOr<VerifyReply> reply =
        engine_.Answer(call(), rows[0], committed());
    if (!reply.ok()) return reply.status();
    SetReply(*std::move(reply));
    return std::nullopt;
  }

 private:
  // What stands before the drafts, where questions look at it: not all of it is
  // cached yet.
  absl::Span<const TokenId> AdjustedHistory() {
    if (!AdjustsLogits(call().sampling)) return {};
    const CacheDelta& delta = call().header.delta;
    const auto kept = log().tokens().first(delta.keep_length);
    history_.assign(kept.begin(), kept.end());
    history_.insert(history_.end(), delta.append_tokens.begin(),
                    delta.append_tokens.end());
    return history_;
  }

  const VerifyEngine& engine_;
  std::vector<TokenId> tokens_;  // the delta's and the drafts
  std::vector<TokenId> history_;
  std::vector<RowQuestion> questions_;  // look at the history
};

absl::Status VerifyEngine::Check(const VerifyCall& call) const {
  const int num_drafts = static_cast<int>(call.draft_tokens.size());
  if (num_drafts > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", options_.max_draft_tokens,
                     " draft tokens a round, not ", num_drafts));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckDelta(call.header.delta, options_.vocab_size,
                                      options_.context_length,
                                      call.draft_tokens.size()));
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(call.draft_tokens, options_.vocab_size));
  return CodecOf(call.reply_format).Check(call, options_.vocab_size);
}

std::unique_ptr<Work> VerifyEngine::MakeWork(VerifyCall call,
                                             uint64_t content_digest,
                                             std::function<bool()> is_cancelled,
                                             CallWork::Done done) const {
  Work::Request request = {
      .header = call.header,
      .content_digest = content_digest,
      .num_draft_tokens = static_cast<int>(call.draft_tokens.size()),
      .is_cancelled = std::move(is_cancelled),
      .holds_up_stream = HasBegun(call.header, call.prompt_length)};
  return std::make_unique<VerifyWork>(std::move(call), std::move(request),
                                      std::move(done), *this);
}

std::vector<RowQuestion> VerifyEngine::QuestionsOf(
    const VerifyCall& call, absl::Span<const TokenId> committed) const {
  // A test's own chance is no coins of a seed.
  const auto seed = options_.random_source ? std::optional<uint64_t>()
                                           : std::optional(call.seed);
  return CodecOf(call.reply_format)
      .QuestionsOf(call, committed, seed, options_.vocab_size);
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
