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

// What the position behind `drafts` is drawn from: processed as the request
// says, cut to the support.
absl::StatusOr<Distribution> DraftRow(absl::Span<const float> logits,
                                      absl::Span<const TokenId> drafts,
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
                                     .drafts = drafts,
                                     .prompt_length = context.prompt_length}));
  return KeepTop(row, cut.support_size, cut.support_mass);
}

// Draws the next token from `row` and puts it behind the draft, with the
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
  // Before sampling: what is drawn from is what is sent.
  Distribution q = context.options.round_weights ? row.RoundedToBFloat16()
                                                 : row.Normalized();
  const CoinKey coin = {Purpose::kDraft, position,
                        OUTRIDER_MUTANT(C1, context.step, 0)};
  const size_t place = context.random->Categorical(
      coin, OUTRIDER_MUTANT(T3, q.weights(), row.weights()));
  draft.tokens.push_back(q.support()[place]);
  draft.distributions.push_back(std::move(q));
}

}  // namespace

ModelStrategy::ModelStrategy(std::unique_ptr<CausalLm> model, int vocab_size)
    : model_(std::move(model)), vocab_size_(vocab_size) {}

absl::StatusOr<Proposal> ModelStrategy::Propose(const DraftContext& context) {
  const int num_committed = static_cast<int>(context.committed.size());
  Proposal proposal = {.draft = {.start = context.committed.size()}};
  Draft& draft = proposal.draft;
  if (context.max_draft_tokens == 0) {
    const Extension prefill = {
        .session = context.session,
        .keep_length = context.keep_length,
        .tokens = context.committed.subspan(context.keep_length)};
    OUTRIDER_RETURN_IF_ERROR(model_->Extend({prefill})[0].status());
    return proposal;
  }

  int keep_length = context.keep_length;
  absl::Span<const TokenId> input = context.committed.subspan(keep_length);
  double probability = 1;  // of the drafter's first choices, all together
  for (int i = 0; i < context.max_draft_tokens; ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(const LogitRows rows,
                              model_->Extend({{.session = context.session,
                                               .keep_length = keep_length,
                                               .tokens = input,
                                               .num_rows = 1}})[0]);
    const absl::Span<const float> logits = rows.Row(0).first(vocab_size_);
    OUTRIDER_ASSIGN_OR_RETURN(const Distribution row,
                              DraftRow(logits, draft.tokens, context));
    DrawInto(draft, row, context);

    if (context.options.min_draft_probability > 0) {
      probability *= TopProbability(logits);
      if (probability < context.options.min_draft_probability) break;
    }
    keep_length = num_committed + i;
    input = absl::MakeConstSpan(draft.tokens).last(1);
  }
  // The last token drawn was not run through the model.
  proposal.num_cached_drafts = draft.length() - 1;
  return proposal;
}

void ModelStrategy::Release(const SessionId& session) {
  model_->Release(session);
}

}  // namespace outrider
