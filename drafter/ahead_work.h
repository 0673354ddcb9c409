// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_AHEAD_WORK_H_
#define OUTRIDER_DRAFTER_AHEAD_WORK_H_

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/drafting/draft_strategy.h"
#include "core/engine/call_work.h"
#include "core/wire/node_calls.h"
#include "drafter/likely_outcomes.h"

namespace outrider {

// Drafts ahead: while drafts are being verified, for what may come of it. One
// extension runs them, and their rows say which outcomes are likely; each of
// these then is a branch of the session's text, and every further extension has
// one row of each. What a branch draws is what a Draft call of its own would,
// whose step is the outcome's.
class AheadWork final : public CallWork<DraftCall, DraftReply> {
 public:
  struct Options {
    int vocab_size = 0;
    int context_length = 0;
    int max_outcomes = 0;       // no matter what the call asks for
    bool model_answers = true;  // questions about rows; else none are asked
  };

  // The strategy must outlive it.
  AheadWork(DraftCall call, Request request, Done done,
            const DraftStrategy& strategy, std::unique_ptr<RandomSource> random,
            const Options& options);

  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override;

 private:
  // The draft for one outcome.
  struct Guess {
    LikelyOutcome outcome = {};
    DraftContext context = {};
    std::unique_ptr<DraftInProgress> drafting = {};
  };

  Want Start() override;
  InFlight Drafts() const;
  int MaxOutcomes() const;
  absl::StatusOr<std::optional<Want>> Choose(const LogitRows& rows);
  // Adds the draft for the next outcome to what is wanted.
  void AddBranch(const LikelyOutcome& outcome, Want& want);
  // Adds what is asked of the rows of those that are drawn next.
  void Ask(Want& want);
  absl::StatusOr<std::optional<Want>> Draw(absl::Span<const LogitRows> rows);
  // Fewer at the context's end: that depends on lengths alone.
  int DraftLength(int num_accepted) const;
  // The text that an outcome goes on from, without its next token.
  absl::Span<const TokenId> Accepted(const LikelyOutcome& outcome) const;
  bool IsLast(const std::vector<int>& drawing) const;

  const DraftStrategy& strategy_;
  const std::unique_ptr<RandomSource> random_;
  const Options options_;
  std::vector<TokenId> tokens_;  // the delta's and those in flight
  bool has_chosen_ = false;
  std::deque<Guess> guesses_;           // they stay where they are
  std::vector<int> drawing_;            // those whose rows come next
  std::vector<RowQuestion> questions_;  // about these
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_AHEAD_WORK_H_
