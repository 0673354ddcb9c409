// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/lookup_draft_client.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace outrider {
namespace {

// A lookup is preferred down to this share of the drafter's acceptance: it
// costs neither a call nor a model's time.
constexpr double kPreference = 0.75;

int MostOf(double num_accepted) {
  return 2 + static_cast<int>(2 * num_accepted);
}

}  // namespace

Task<absl::StatusOr<ProposedDraft>> LookupDraftClient::Propose(Session& session,
                                                               int num_tokens) {
  author_ = nullptr;
  if (num_tokens == 0) co_return co_await drafter_.Propose(session, 0);
  const absl::Span<const TokenId> text = session.committed().tokens();
  const PromptLookup::Match match = PromptLookup::Find(text, kLookup);
  Estimate& by_match = by_match_length_[match.length];
  if (match.length > 0 &&
      by_match.value() >= kPreference * by_drafter_.value()) {
    OUTRIDER_CO_ASSIGN_OR_RETURN(ProposedDraft proposed,
                                 co_await drafter_.Propose(session, 0));
    author_ = &by_match;
    // What is looked up costs rows alone: somewhat more than stood of late.
    const int wanted = mode_ == DraftLengthMode::kFixed
                           ? num_tokens
                           : std::min(num_tokens, MostOf(by_match.value()));
    const size_t count = std::min<size_t>(wanted, match.continuation.size());
    proposed.draft =
        Draft::OneHot(session.length(), match.continuation.first(count));
    proposed.num_looked_up = static_cast<int>(count);
    co_return proposed;
  }
  OUTRIDER_CO_ASSIGN_OR_RETURN(ProposedDraft draft,
                               co_await drafter_.Propose(session, num_tokens));
  author_ = &by_drafter_;
  co_return draft;
}

void LookupDraftClient::Learn(const RoundStats& round) {
  if (author_ != nullptr) author_->Add(round.num_accepted);
  author_ = nullptr;
  drafter_.Learn(round);
}

}  // namespace outrider
