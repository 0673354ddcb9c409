// SPDX-License-Identifier: Apache-2.0
#include "drafter/ahead_work.h"

#include <algorithm>
#include <utility>

#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {

AheadWork::AheadWork(DraftCall call, Request request, Done done,
                     const DraftStrategy& strategy,
                     std::unique_ptr<RandomSource> random,
                     const Options& options)
    : CallWork(std::move(call), std::move(request), std::move(done)),
      strategy_(strategy),
      random_(std::move(random)),
      options_(options),
      tokens_(this->call().header.delta.append_tokens) {
  const std::vector<TokenId>& in_flight = this->call().in_flight_tokens;
  tokens_.insert(tokens_.end(), in_flight.begin(), in_flight.end());
}

Want AheadWork::Start() {
  if (options_.model_answers) {
    questions_ = AskOutcomes(Drafts(), MaxOutcomes(), options_.vocab_size);
  }
  return {.tokens = tokens_,
          .num_rows = static_cast<int>(call().in_flight_tokens.size()) + 1,
          .questions = questions_};
}

InFlight AheadWork::Drafts() const {
  return {.tokens = call().in_flight_tokens,
          .acceptance = call().acceptance,
          // An outcome has a next token, and a draft one at least.
          .max_accepted =
              options_.context_length - static_cast<int>(num_committed()) - 2};
}

int AheadWork::MaxOutcomes() const {
  return std::min(call().max_outcomes, options_.max_outcomes);
}

absl::StatusOr<std::optional<Want>> AheadWork::Take(
    absl::Span<const LogitRows> rows) {
  return has_chosen_ ? Draw(rows) : Choose(rows[0]);
}

absl::StatusOr<std::optional<Want>> AheadWork::Choose(const LogitRows& rows) {
  has_chosen_ = true;
  // What is answered where there is no room for branches.
  SetReply({.outcome = Draft::None(static_cast<int>(num_committed()))});
  if (call().max_draft_tokens == 0) return std::nullopt;
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::vector<LikelyOutcome> outcomes,
      LikelyOutcomes(rows.WithVocabSize(options_.vocab_size), Drafts(),
                     MaxOutcomes()));
  if (outcomes.empty()) return std::nullopt;
  Want want;
  for (const LikelyOutcome& outcome : outcomes) AddBranch(outcome, want);
  want.is_last = IsLast(drawing_);
  Ask(want);
  return want;
}

void AheadWork::AddBranch(const LikelyOutcome& outcome, Want& want) {
  const int index = static_cast<int>(guesses_.size());
  Guess& guess = guesses_.emplace_back(Guess{.outcome = outcome});
  const uint64_t step = call().header.step;
  guess.context = {
      .guessed = {&guess.outcome.next_token, 1},
      .prompt_length = call().prompt_length,
      .max_draft_tokens = DraftLength(outcome.num_accepted),
      .options = call().options,
      .sampling = call().sampling,
      .rule = call().rule,
      .step = OUTRIDER_MUTANT(A1, step + static_cast<uint64_t>(index), step),
      .model_answers = options_.model_answers,
      .random = random_.get()};
  const int length = static_cast<int>(num_committed()) + outcome.num_accepted;
  const auto start = static_cast<uint64_t>(length) + 1;
  guess.drafting = strategy_.Begin(guess.context, start);
  // The last token drawn is not run through the model.
  want.forks.push_back({.length = length,
                        .max_length = length + guess.context.max_draft_tokens});
  want.branches.push_back({.branch = index, .token = outcome.next_token});
  drawing_.push_back(index);
}

void AheadWork::Ask(Want& want) {
  questions_.clear();
  if (!options_.model_answers) return;
  for (const int index : drawing_) {
    Guess& guess = guesses_[index];
    guess.context.committed = Accepted(guess.outcome);
    questions_.push_back(guess.drafting->question());
  }
  want.questions = questions_;
}

absl::StatusOr<std::optional<Want>> AheadWork::Draw(
    absl::Span<const LogitRows> rows) {
  // The first time there may be room for fewer.
  if (rows.size() < drawing_.size()) {
    drawing_.resize(rows.size());
    guesses_.resize(rows.size());
  }
  Want want;
  std::vector<int> drawing;
  for (size_t i = 0; i < rows.size(); ++i) {
    Guess& guess = guesses_[drawing_[i]];
    guess.context.committed = Accepted(guess.outcome);
    OUTRIDER_ASSIGN_OR_RETURN(const bool goes_on,
                              guess.drafting->Take(rows[i]));
    if (!goes_on) continue;
    drawing.push_back(drawing_[i]);
    want.branches.push_back({.branch = drawing_[i],
                             .token = guess.drafting->draft().tokens.back()});
  }
  drawing_ = std::move(drawing);
  want.is_last = IsLast(drawing_);
  if (!drawing_.empty()) {
    Ask(want);
    return want;
  }
  DraftReply reply = {.outcome =
                          Draft::None(static_cast<int>(num_committed()))};
  reply.outcomes.reserve(guesses_.size());
  for (const Guess& guess : guesses_) {
    reply.outcomes.push_back({.num_accepted = guess.outcome.num_accepted,
                              .next_token = guess.outcome.next_token,
                              .draft = guess.drafting->TakeDraft()});
  }
  SetReply(std::move(reply));
  return std::nullopt;
}

int AheadWork::DraftLength(int num_accepted) const {
  const int room = options_.context_length - static_cast<int>(num_committed()) -
                   num_accepted - 1;
  return std::min(call().max_draft_tokens, room);
}

absl::Span<const TokenId> AheadWork::Accepted(
    const LikelyOutcome& outcome) const {
  return log().tokens().first(num_committed() +
                              static_cast<size_t>(outcome.num_accepted));
}

bool AheadWork::IsLast(const std::vector<int>& drawing) const {
  return std::all_of(drawing.begin(), drawing.end(), [this](int index) {
    const Guess& guess = guesses_[index];
    return guess.drafting->draft().length() + 1 >=
           guess.context.max_draft_tokens;
  });
}

}  // namespace outrider
