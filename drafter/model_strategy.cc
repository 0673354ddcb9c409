// SPDX-License-Identifier: Apache-2.0
#include "drafter/model_strategy.h"

#include <utility>

#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/coupled.h"
#include "core/sampling/cut.h"
#include "core/sampling/draft_confidence.h"
#include "core/sampling/process.h"

namespace outrider {
namespace {

// What the position after `uncommitted` is drawn from: processed as the request
// says, cut to the support.
absl::StatusOr<Distribution> DraftRow(absl::Span<const float> logits,
                                      absl::Span<const TokenId> uncommitted,
                                      const DraftContext& context) {
  const DraftOptions& cut = context.options;
  SamplingParams params = context.sampling;
  if (params.top_p == 1 && cut.support_mass == 1 &&
      (params.top_k == 0 || params.top_k > cut.support_size)) {
    // The cut comes last, so it may as well be a top-k: no need of exponentials
    // for what it leaves out.
    params.top_k = cut.support_size;
  }
  OUTRIDER_ASSIGN_OR_RETURN(const Distribution row,
                            Process(logits, params,
                                    {.committed = context.committed,
                                     .drafts = uncommitted,
                                     .prompt_length = context.prompt_length}));
  return KeepTop(row, cut.support_size, cut.support_mass);
}

// Draws the next token from `row` and puts it after the draft, with the
// distribution that it was really drawn from.
void DrawInto(Draft& draft, const Distribution& row,
              const DraftContext& context) {
  const uint64_t position = draft.start + draft.length();
  if (context.rule == RuleKind::kCoupled) {
    const TokenId token = DrawCoupled(row, position, *context.random);
    draft.tokens.push_back(token);
    draft.distributions.push_back(Distribution::OneHot(token));
    return;
  }
  // Rounding comes before sampling: what is drawn from is what is sent.
  Distribution q = context.options.round_weights ? row.RoundedToBFloat16()
                                                 : row.Normalized();
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
        vocab_size_(vocab_size),
        uncommitted_(context.guessed.begin(), context.guessed.end()),
        draft_({.start = start}) {}

  int num_rows() const override {
    return context_.max_draft_tokens > 0 ? 1 : 0;
  }

  absl::StatusOr<bool> Take(const LogitRows& rows) override {
    if (context_.max_draft_tokens == 0) return false;
    const absl::Span<const float> logits = rows.Row(0).first(vocab_size_);
    OUTRIDER_ASSIGN_OR_RETURN(const Distribution row,
                              DraftRow(logits, uncommitted_, context_));
    DrawInto(draft_, row, context_);
    uncommitted_.push_back(draft_.tokens.back());
    if (context_.options.min_draft_probability > 0) {
      probability_ *= TopProbability(logits);
      if (probability_ < context_.options.min_draft_probability) return false;
    }
    return draft_.length() < context_.max_draft_tokens;
  }

  const Draft& draft() const override { return draft_; }

 private:
  const DraftContext& context_;
  const int vocab_size_;
  TokenSeq uncommitted_;  // guessed, then drafted
  Draft draft_;
  double probability_ = 1;  // of the drafter's first choices, all together
};

}  // namespace

std::unique_ptr<DraftInProgress> ModelStrategy::Begin(
    const DraftContext& context, uint64_t start) const {
  return std::make_unique<ModelDraft>(context, start, vocab_size_);
}

}  // namespace outrider
