// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_

#include <array>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/round/draft_client.h"
#include "core/drafting/prompt_lookup.h"

namespace outrider {

// PromptLookup in front of a drafter: where the session's text says itself how
// it may go on, the drafter is not asked, and only takes the text in. It drafts
// where nothing is found, and where matches as long as the one found did
// clearly worse in this session than the drafter does. Where it was to draft
// and has no draft, as it is away, takes in the text, or is too far to pay,
// what is found fills in.
//
// Exact: rows are one-hot, and who drafts is decided by the committed text, by
// past rounds, and by which peers fail, never by what a draft that is under way
// holds. One object a session.
class LookupDraftClient final : public DraftClient {
 public:
  LookupDraftClient(DraftClient& drafter, DraftLengthMode mode)
      : drafter_(drafter), mode_(mode) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;
  // Where lookups drafted, they are likely to go on.
  void DraftAhead(Session& session, const Draft& in_flight) override {
    if (author_ == &by_drafter_) drafter_.DraftAhead(session, in_flight);
  }
  // Credits the round to whoever drafted it.
  void Learn(const RoundStats& round) override;

 private:
  static constexpr PromptLookup::Options kLookup = {.max_match = 8,
                                                    .min_match = 1};

  // Accepted drafts a round, of late; hopeful at first.
  class Estimate {
   public:
    void Add(int num_accepted) { value_ += kWeight * (num_accepted - value_); }
    double value() const { return value_; }

   private:
    static constexpr double kWeight = 0.1;
    double value_ = 2;
  };

  DraftClient& drafter_;
  const DraftLengthMode mode_;
  Estimate by_drafter_;
  std::array<Estimate, kLookup.max_match + 1> by_match_length_;
  Estimate* author_ = nullptr;  // of the round's draft; null: nobody
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_
