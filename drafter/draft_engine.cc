// SPDX-License-Identifier: Apache-2.0
#include "drafter/draft_engine.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/coins.h"
#include "core/session/check_tokens.h"
#include "drafter/ahead_work.h"
#include "drafter/draft_pass.h"

namespace outrider {

class DraftEngine::DraftWork final : public CallWork {
 public:
  DraftWork(DraftCall call, Request request, Done done,
            const DraftEngine& engine)
      : CallWork(std::move(call), std::move(request), std::move(done)),
        strategy_(*engine.strategy_),
        random_(engine.MakeCoins(this->call().seed)),
        context_({.prompt_length = this->call().prompt_length,
                  .max_draft_tokens = engine.DraftLength(this->call()),
                  .options = this->call().options,
                  .sampling = this->call().sampling,
                  .rule = this->call().rule,
                  .step = this->call().header.step,
                  .seed = this->call().seed,
                  .model_answers = engine.options_.model_answers,
                  .random = random_.get()}) {}

  Want Start() override {
    if (context_.model_answers && LooksAtText(call().sampling)) {
      text_ = TextOfDelta();
      context_.committed = text_;
    }
    drafting_ = strategy_.Begin(context_, num_committed());
    return WantOf(call().header.delta.append_tokens);
  }

  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override {
    context_.committed = committed();
    OUTRIDER_ASSIGN_OR_RETURN(const AfterPass next,
                              TakePass(*drafting_, rows[0]));
    const Draft& draft = drafting_->draft();
    if (next == AfterPass::kComplete) {
      // A draft that ends early may leave what the model went on with, in place
      // of its last token and after it.
      const int num_drafted = draft.length();
      SetReply(
          {.outcome = drafting_->TakeDraft()},
          static_cast<int>(num_committed()) + std::max(0, num_drafted - 1));
      return std::nullopt;
    }
    Want want = WantOf(absl::MakeConstSpan(draft.tokens).last(1));
    if (next == AfterPass::kCutFirst) {
      const int num_cached =
          OUTRIDER_MUTANT(G2, draft.length() - 1, draft.length());
      want.keep_length = static_cast<int>(num_committed()) + num_cached;
    }
    return want;
  }

 private:
  Want WantOf(absl::Span<const TokenId> tokens) {
    pass_ = NextPass(*drafting_, context_.max_draft_tokens);
    const int num_drafted = drafting_->draft().length();
    return {.tokens = tokens,
            .num_rows = pass_.num_rows,
            .is_last = num_drafted + 1 >= context_.max_draft_tokens,
            .questions = {&pass_.question, static_cast<size_t>(pass_.num_rows)},
            .max_drawn = pass_.max_drawn};
  }

  const DraftStrategy& strategy_;
  const std::unique_ptr<RandomSource> random_;
  std::vector<TokenId> text_;  // where questions look at it
  DraftContext context_;
  std::unique_ptr<DraftInProgress> drafting_;
  DraftPass pass_;
};

DraftEngine::DraftEngine(std::unique_ptr<DraftStrategy> strategy,
                         Options options)
    : strategy_(std::move(strategy)), options_(std::move(options)) {}

absl::Status DraftEngine::Check(const DraftCall& call) const {
  OUTRIDER_RETURN_IF_ERROR(Validate(call.sampling, options_.vocab_size));
  OUTRIDER_RETURN_IF_ERROR(CheckDelta(call.header.delta, options_.vocab_size,
                                      options_.context_length,
                                      call.in_flight_tokens.size()));
  if (call.max_draft_tokens < 0 ||
      call.max_draft_tokens > options_.max_draft_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_draft_tokens must be between 0 and ", options_.max_draft_tokens,
        ", not ", call.max_draft_tokens));
  }
  OUTRIDER_RETURN_IF_ERROR(Validate(call.options, options_.vocab_size));
  // Its rows have to fit into a message (kMaxRowIds).
  const int64_t num_ids =
      int64_t{std::min(call.options.support_size, options_.vocab_size)} *
      call.max_draft_tokens;
  const bool has_rows =
      call.rule != RuleKind::kCoupled && !IsGreedy(call.sampling);
  if (has_rows && num_ids > kMaxRowIds) {
    return absl::InvalidArgumentError(absl::StrCat(
        call.max_draft_tokens, " rows of support_size ",
        call.options.support_size, " are more than the ", kMaxRowIds,
        " ids that a message may have: ask for fewer tokens or smaller rows"));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckInFlight(call));
  return CheckPromptLength(call.prompt_length, call.header.delta.length());
}

absl::Status DraftEngine::CheckInFlight(const DraftCall& call) const {
  if (call.max_outcomes < 0 || call.max_outcomes > options_.max_outcomes) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_outcomes must be between 0 and ",
                     options_.max_outcomes, ", not ", call.max_outcomes));
  }
  const auto most = static_cast<size_t>(options_.max_draft_tokens);
  if (call.in_flight_tokens.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("in_flight_tokens must be at most ", most, ", not ",
                     call.in_flight_tokens.size()));
  }
  return CheckTokens(call.in_flight_tokens, options_.vocab_size);
}

std::unique_ptr<Work> DraftEngine::MakeWork(DraftCall call,
                                            uint64_t content_digest,
                                            std::function<bool()> is_cancelled,
                                            CallWork::Done done) const {
  if (call.max_outcomes > 0) {
    return MakeAheadWork(std::move(call), content_digest,
                         std::move(is_cancelled), std::move(done));
  }
  // It holds up no stream: while its text is taken in, rounds go on without
  // drafts.
  Work::Request request = {
      .header = call.header,
      .content_digest = content_digest,
      // The last token drawn is not run through the model.
      .num_draft_tokens = std::max(0, DraftLength(call) - 1),
      .is_cancelled = std::move(is_cancelled)};
  return std::make_unique<DraftWork>(std::move(call), std::move(request),
                                     std::move(done), *this);
}

std::unique_ptr<Work> DraftEngine::MakeAheadWork(
    DraftCall call, uint64_t content_digest, std::function<bool()> is_cancelled,
    CallWork::Done done) const {
  Work::Request request = {
      .header = call.header,
      .content_digest = content_digest,
      .num_draft_tokens = static_cast<int>(call.in_flight_tokens.size()),
      .is_cancelled = std::move(is_cancelled),
      .is_ahead = true};
  // The rows of all drafts have to fit into a message.
  const int64_t num_ids =
      int64_t{std::min(call.options.support_size, options_.vocab_size)} *
      std::max(1, call.max_draft_tokens);
  const auto most = static_cast<int>(
      std::min<int64_t>(options_.max_outcomes, kMaxRowIds / num_ids));
  std::unique_ptr<RandomSource> random = MakeCoins(call.seed);
  return std::make_unique<AheadWork>(
      std::move(call), std::move(request), std::move(done), *strategy_,
      std::move(random),
      AheadWork::Options{.vocab_size = options_.vocab_size,
                         .context_length = options_.context_length,
                         .max_outcomes = most,
                         .model_answers = options_.model_answers});
}

int DraftEngine::DraftLength(const DraftCall& call) const {
  const CacheDelta& delta = call.header.delta;
  const int room = options_.context_length - delta.keep_length -
                   static_cast<int>(delta.append_tokens.size());
  return std::min(call.max_draft_tokens, room);
}

std::unique_ptr<RandomSource> DraftEngine::MakeCoins(uint64_t seed) const {
  if (options_.random_source) return options_.random_source(seed);
  return std::make_unique<Coins>(seed);
}

}  // namespace outrider
