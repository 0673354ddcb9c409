// SPDX-License-Identifier: Apache-2.0
#include "drafter/model_strategy.h"

#include <utility>

#include "core/base/mutant.h"
#include "core/base/status_macros.h"
#include "core/sampling/process.h"

namespace outrider {

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

  OUTRIDER_ASSIGN_OR_RETURN(
      Distribution q, NextRow(context, context.keep_length,
                              context.committed.subspan(context.keep_length)));
  for (int i = 0; i < context.max_draft_tokens; ++i) {
    if (i > 0) {
      const int keep_length = num_committed + i - 1;
      OUTRIDER_ASSIGN_OR_RETURN(
          q, NextRow(context, keep_length, {&draft.tokens.back(), 1}));
    }
    const CoinKey coin = {Purpose::kDraft, draft.start + i,
                          OUTRIDER_MUTANT(C1, context.step, 0)};
    const size_t place = context.random->Categorical(coin, q.weights());
    draft.tokens.push_back(q.support()[place]);
    draft.distributions.push_back(std::move(q));
  }
  // The last token drawn was not run through the model.
  proposal.num_cached_drafts = context.max_draft_tokens - 1;
  return proposal;
}

absl::StatusOr<Distribution> ModelStrategy::NextRow(
    const DraftContext& context, int keep_length,
    absl::Span<const TokenId> tokens) {
  const Extension extension = {.session = context.session,
                               .keep_length = keep_length,
                               .tokens = tokens,
                               .num_rows = 1};
  OUTRIDER_ASSIGN_OR_RETURN(const LogitRows rows,
                            model_->Extend({extension})[0]);
  OUTRIDER_ASSIGN_OR_RETURN(
      const Distribution row,
      Process(rows.Row(0).subspan(0, vocab_size_), context.sampling));
  return CutToSupport(row, context.support_size);
}

void ModelStrategy::Release(const SessionId& session) {
  model_->Release(session);
}

}  // namespace outrider
