// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/lookup_draft_client.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace outrider {
namespace {

// A lookup is preferred down to this share of the drafter's acceptance: it
// costs neither a call nor a model's time.
constexpr double kPreference = 0.75;

// Where the drafter has no draft, matches are worth their rows down to this.
constexpr double kWorthItsRows = 0.5;

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
  const bool is_found = match.length > 0;
  const bool is_preferred =
      is_found && by_match.value() >= kPreference * by_drafter_.value();
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      ProposedDraft proposed,
      co_await drafter_.Propose(session, is_preferred ? 0 : num_tokens));
  const bool lacks_drafter = proposed.plain_reason != PlainReason::kNone;
  const bool fills_in =
      lacks_drafter && is_found && by_match.value() >= kWorthItsRows;
  if (!is_preferred && !fills_in) {
    if (!lacks_drafter) author_ = &by_drafter_;
    co_return proposed;
  }
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

void LookupDraftClient::Learn(const RoundStats& round) {
  if (author_ != nullptr) author_->Add(round.num_accepted);
  author_ = nullptr;
  drafter_.Learn(round);
}

}  // namespace outrider
