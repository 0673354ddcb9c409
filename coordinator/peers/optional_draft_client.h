// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_
#define OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/side_draft.h"
#include "coordinator/round/draft_client.h"

namespace outrider {

// Makes drafting optional: where there is no draft the round is plain decoding.
// No round waits for the drafter to take in a text; that goes on beside the
// session, which drafts when it is done. A drafter that fails again and again,
// or costs more than it saves, is left alone for a while. Each such round says
// why in its statistics, and the first failure of a row is logged.
//
// A draft that was asked for is waited for, until its peer has failed: how long
// it takes depends on its tokens, so to drop late ones would change the
// output's law. Whether to ask is decided before, from past rounds.
//
// Never fails itself, but when cancelled. One object a session; Stop must have
// been awaited before it goes.
class OptionalDraftClient final : public DraftClient {
 public:
  struct Drafter {
    NodeDraftClient& node;
    CircuitBreaker& breaker;      // of all its sessions
    DraftLengthControl& control;  // of those that draft and judge alike
  };

  // Who drafts in the round that begins: nothing where nobody does. Asked while
  // no call is under way; the drafter that it yields stays until it is asked
  // again, and where that is another, the session's mirror knows.
  using Choose = std::function<std::optional<Drafter>(Session& session)>;

  OptionalDraftClient(Choose choose, DraftLengthMode mode)
      : choose_(std::move(choose)), mode_(mode) {}

  // What a call asks for by such a choice.
  static NodeDraftClient::Length LengthOf(
      const DraftLengthControl::Choice& choice);

  // Whether the last round had one.
  bool has_drafter() const { return drafter_.has_value(); }
  // Whether other sessions may be at work that its control chooses for.
  bool may_have_company() const {
    return has_drafter() && drafter_->control.MayHaveCompany();
  }

  // `num_tokens` is the most that kAuto chooses.
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override;
  void DraftAhead(Session& /*session*/, const Draft& /*in_flight*/) override {}
  void Learn(const RoundStats& round) override {
    LearnBeside(round, /*drafts_ahead=*/false);
  }
  // The same of a round while whose verification the drafter drafted ahead, or
  // did not.
  void LearnBeside(const RoundStats& round, bool drafts_ahead);

  // The drafter, for one call that goes on beside the session until the next
  // round proposes; nothing where it is not to be called now. Where it is
  // called, exactly one of Ended and Abandon must follow before that.
  std::optional<Drafter> Lend(Session& session);
  void Ended(const absl::Status& status);
  // A call ended without saying anything about the drafter.
  void Abandon();
  // The round that begins has what such a call drafted for it, by this choice.
  void UseChoice(const DraftLengthControl::Choice& choice) { choice_ = choice; }
  DraftLengthMode mode() const { return mode_; }

  // Ends what still goes on beside the session, at its end.
  Task<void> Stop(Session& session);

 private:
  using Clock = CircuitBreaker::Clock;

  void TakeDrafter(std::optional<Drafter> drafter);
  // Lets the drafter take in what it lacks, if it is to be asked, now or later.
  // kNone: it has the text, and may be. Adds to `link` what an earlier fill
  // took.
  PlainReason Prepare(Session& session, bool is_wanted, RoundStats::Link& link);
  // Takes in the reply of the fill, which is done. False where it failed.
  bool TakeFill(Session& session, RoundStats::Link& link);
  // If so, exactly one of Ended and Abandon must follow.
  bool MayCall(Clock::time_point now);

  const Choose choose_;
  const DraftLengthMode mode_;
  std::optional<Drafter> drafter_;
  CircuitBreaker own_breaker_;         // for failures that are no other's
  CircuitBreaker::Permit own_permit_;  // of the call under way
  CircuitBreaker::Permit permit_;      // likewise, of the drafter's breaker
  std::unique_ptr<SideDraft> fill_;    // null: none is under way
  bool is_first_ = true;               // round, which takes in the prompt
  // What was chosen for the round that runs; nothing where it does not draft.
  std::optional<DraftLengthControl::Choice> choice_;
  bool had_drafts_ = false;  // the last round
  int64_t last_round_ = 0;   // that its control has learned; 0: none
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_OPTIONAL_DRAFT_CLIENT_H_
