// SPDX-License-Identifier: Apache-2.0
#include "drafter/model_strategy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/logit_moves.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/ask_rows.h"
#include "core/sampling/coupled.h"
#include "core/sampling/cut.h"
#include "core/sampling/draft_confidence.h"
#include "core/sampling/process.h"

namespace outrider {
namespace {

// How a row is processed before it is cut to the support.
SamplingParams ProcessingOf(const DraftContext& context) {
  const DraftOptions& cut = context.options;
  SamplingParams params = context.sampling;
  if (params.top_p == 1 && cut.support_mass == 1 &&
      (params.top_k == 0 || params.top_k > cut.support_size)) {
    // The cut comes last, so it may as well be a top-k: no need of exponentials
    // for what it leaves out.
    params.top_k = cut.support_size;
  }
  return params;
}

// The same of a row that is answered: its mass is cut with the rest, as what is
// left may be known where the whole is not.
SamplingParams AskedProcessingOf(const DraftContext& context) {
  SamplingParams params = ProcessingOf(context);
  if (params.top_p == 1) params.top_p = context.options.support_mass;
  return params;
}

// What a row that was answered is cut to after that.
double MassLeftToCut(const DraftContext& context) {
  return context.sampling.top_p == 1 ? 1 : context.options.support_mass;
}

TokenHistory HistoryOf(absl::Span<const TokenId> uncommitted,
                       const DraftContext& context) {
  return {.committed = context.committed,
          .drafts = uncommitted,
          .prompt_length = context.prompt_length};
}

// What the position after `uncommitted` is drawn from: processed as the request
// says, cut to the support.
absl::StatusOr<Distribution> DraftRow(absl::Span<const float> logits,
                                      absl::Span<const TokenId> uncommitted,
                                      const DraftContext& context) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const Distribution row,
      Process(logits, ProcessingOf(context), HistoryOf(uncommitted, context)));
  return KeepTop(row, context.options.support_size,
                 context.options.support_mass);
}

// The same from an answer to AskTop.
absl::StatusOr<Distribution> DraftRow(const TopAnswer& answer,
                                      const DraftContext& context) {
  if (answer.row == nullptr) {
    return absl::InternalError("an answered row does not decide");
  }
  return KeepTop(*answer.row, context.options.support_size,
                 MassLeftToCut(context));
}

// Draws the next token from `row` and puts it after the draft, with the
// distribution that it was really drawn from.
void DrawInto(Draft& draft, Distribution row, const DraftContext& context) {
  const uint64_t position = draft.start + draft.length();
  if (context.rule == RuleKind::kCoupled) {
    const TokenId token = DrawCoupled(row, position, *context.random);
    draft.tokens.push_back(token);
    draft.distributions.push_back(Distribution::OneHot(token));
    return;
  }
  // Rounding comes before sampling: what is drawn from is what is sent.
  Distribution drawn = OUTRIDER_MUTANT(T3, std::move(row), Distribution(row));
  Distribution q = context.options.round_weights
                       ? std::move(drawn).RoundedToBFloat16()
                       : drawn.Normalized();
  const CoinKey coin = {Purpose::kDraft, position,
                        OUTRIDER_MUTANT(C1, context.step, 0)};
  const size_t place = context.random->Categorical(
      coin, OUTRIDER_MUTANT(T3, q.weights(), row.weights()));
  draft.tokens.push_back(q.support()[place]);
  draft.distributions.push_back(std::move(q));
}

class ModelDraft final : public DraftInProgress {
 public:
  ModelDraft(const DraftContext& context, uint64_t start, int vocab_size)
      : context_(context),
        asked_(AskedProcessingOf(context)),
        vocab_size_(vocab_size),
        uncommitted_(context.guessed.begin(), context.guessed.end()) {
    draft_.start = start;
    const auto most = static_cast<size_t>(context.max_draft_tokens);
    draft_.tokens.reserve(most);
    draft_.distributions.reserve(most);
    uncommitted_.reserve(uncommitted_.size() + most);
  }

  int num_rows() const override {
    return context_.max_draft_tokens > 0 ? 1 : 0;
  }

  RowQuestion question() const override {
    if (num_rows() == 0 || !context_.model_answers) return {};
    if (!moves_.has_value()) {
      auto moves =
          MovesOf(asked_, HistoryOf(uncommitted_, context_), vocab_size_);
      if (!moves.ok()) return {};  // the whole row says it again
      moves_ = *std::move(moves);
    }
    RowQuestion question = AskTop(asked_, *moves_, vocab_size_);
    if (auto* top = std::get_if<TopQuestion>(&question.what)) {
      top->wants_top_probability = EndsEarly();
      // A model draws from the greatest logits alone.
      if (!AdjustsLogits(asked_)) top->next = HowNextIsDrawn();
    }
    return question;
  }

  absl::StatusOr<bool> Take(const LogitRows& rows) override {
    if (context_.max_draft_tokens == 0) return false;
    const LogitRows own = rows.WithVocabSize(vocab_size_);
    const RowView view = own.View(0);
    OUTRIDER_ASSIGN_OR_RETURN(
        Distribution row,
        view.answer != nullptr
            ? DraftRow(std::get<TopAnswer>(*view.answer), context_)
            : DraftRow(view.logits, uncommitted_, context_));
    DrawInto(draft_, std::move(row), context_);
    uncommitted_.push_back(draft_.tokens.back());
    if (moves_.has_value()) {
      AddGenerated(draft_.tokens.back(), asked_, *moves_);
    }
    if (EndsEarly()) {
      const double confidence =
          view.answer != nullptr
              ? std::get<TopAnswer>(*view.answer).top_probability
              : TopProbability(view.logits);
      draft_.confidences.push_back(
          std::min(1.0f, static_cast<float>(confidence)));
      probability_ *= confidence;
      if (probability_ < MinProbability()) return false;
    }
    return draft_.length() < context_.max_draft_tokens;
  }

 private:
  double MinProbability() const {
    return context_.options.min_draft_probability.value_or(0);
  }
  bool EndsEarly() const { return MinProbability() > 0; }

  // What Take makes of an answer, for a model to guess its token by.
  NextDraw HowNextIsDrawn() const {
    return {.top_k = asked_.top_k,
            .min_p = asked_.min_p,
            .top_p = asked_.top_p,
            .support_size = context_.options.support_size,
            .support_mass = MassLeftToCut(context_),
            .round_weights = context_.options.round_weights,
            .min_probability = MinProbability(),
            .probability = probability_,
            .is_coupled = context_.rule == RuleKind::kCoupled,
            .seed = context_.seed,
            .position = draft_.start + draft_.length(),
            .generation = context_.step};
  }

  const DraftContext& context_;
  const SamplingParams asked_;  // where rows are answered
  const int vocab_size_;
  TokenSeq uncommitted_;  // guessed, then drafted
  // What moves the next row's logits, once somebody has asked for a question.
  mutable std::optional<LogitMoves> moves_ = {};
  double probability_ = 1;  // of the drafter's first choices, all together
};

}  // namespace

std::unique_ptr<DraftInProgress> ModelStrategy::Begin(
    const DraftContext& context, uint64_t start) const {
  return std::make_unique<ModelDraft>(context, start, vocab_size_);
}

}  // namespace outrider
