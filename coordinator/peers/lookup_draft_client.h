// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_

#include <array>

#include "coordinator/round/draft_client.h"
#include "core/drafting/prompt_lookup.h"

namespace outrider {

// PromptLookup in front of a drafter: where the session's text says itself how
// it may go on, no drafter is called, and its cache catches up later. The
// drafter drafts where nothing is found, and where matches as long as the one
// found did clearly worse in this session than the drafter does.
//
// Exact: rows are one-hot, and who drafts is decided by the committed text and
// by past acceptance (exactness.md: "K from past acceptance"). No clock has a
// say, so a seed gives the same tokens again. One object a session.
class LookupDraftClient final : public DraftClient {
 public:
  explicit LookupDraftClient(DraftClient& drafter) : drafter_(drafter) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;

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

  // Credits the last round to whoever drafted it.
  void Learn(const Session& session);

  DraftClient& drafter_;
  Estimate by_drafter_;
  std::array<Estimate, kLookup.max_match + 1> by_match_length_;
  // Of the last round: whose draft it was, null for nobody's, and where.
  Estimate* author_ = nullptr;
  int start_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_LOOKUP_DRAFT_CLIENT_H_
