// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/lookup_draft_client.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace outrider {
namespace {

// A lookup is preferred down to this share of the drafter's acceptance: it
// costs neither a call nor a model's time.
constexpr double kPreference = 0.75;

}  // namespace

void LookupDraftClient::Learn(const Session& session) {
  if (author_ == nullptr) return;
  // A round commits what it accepts and one token; one that failed, nothing.
  const int num_committed = session.length() - start_;
  if (num_committed > 0) author_->Add(num_committed - 1);
  author_ = nullptr;
}

Task<absl::StatusOr<ProposedDraft>> LookupDraftClient::Propose(Session& session,
                                                               int num_tokens) {
  if (num_tokens == 0) co_return co_await drafter_.Propose(session, 0);
  Learn(session);
  const absl::Span<const TokenId> text = session.committed().tokens();
  const PromptLookup::Match match = PromptLookup::Find(text, kLookup);
  Estimate& by_match = by_match_length_[match.length];
  if (match.length > 0 &&
      by_match.value() >= kPreference * by_drafter_.value()) {
    author_ = &by_match;
    start_ = session.length();
    const size_t count =
        std::min<size_t>(num_tokens, match.continuation.size());
    co_return ProposedDraft{
        .draft = Draft::OneHot(start_, match.continuation.first(count)),
        .num_looked_up = static_cast<int>(count)};
  }
  OUTRIDER_CO_ASSIGN_OR_RETURN(ProposedDraft draft,
                               co_await drafter_.Propose(session, num_tokens));
  author_ = &by_drafter_;
  start_ = session.length();
  co_return draft;
}

}  // namespace outrider
