// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/generation.h"

#include <utility>

#include "absl/status/status.h"
#include "coordinator/nodes/session_errors.h"
#include "core/base/status_macros.h"

namespace outrider {

Task<absl::StatusOr<GenerationUpdate>> Generation::Run() {
  Session& session = parts_.session;
  std::optional<FinishReason> reason = ReplayDelivered();
  while (!reason.has_value()) {
    if (session.cancellation().cancelled()) {
      co_return absl::CancelledError("the client is gone");
    }
    const int length_before = session.length();
    absl::StatusOr<RoundResult> round = co_await parts_.decoder.Round(session);
    // A resume that no verifier has taken in is refused, as there may be more
    // memory elsewhere.
    if (IsOutgrown(round.status()) && has_begun_) {
      reason = FinishReason::kLength;
      break;
    }
    OUTRIDER_CO_ASSIGN_OR_RETURN(RoundResult result, std::move(round));
    GenerationUpdate update = TakeBlock(length_before, result, reason);
    OUTRIDER_CO_RETURN_IF_ERROR(co_await parts_.sink.Write(std::move(update)));
  }
  finish_.reason = *reason;
  if (!is_text_over_) {
    TextStream::Piece last = parts_.text.Finish();
    finish_.trailing_text = std::move(last.text);
    if (last.stopped) finish_.reason = FinishReason::kStop;
  }
  co_return GenerationUpdate{.first_index = num_tokens_,
                             .finish = std::move(finish_)};
}

std::optional<FinishReason> Generation::ReplayDelivered() {
  const Session& session = parts_.session;
  const int prompt_length = session.prompt_length();
  num_tokens_ = session.length() - prompt_length;
  const absl::Span<const TokenId> delivered =
      session.committed().From(prompt_length);
  const StopCondition::BlockEnd end =
      parts_.stop.Find(delivered, prompt_length);
  for (int i = 0; i < end.num_kept; ++i) {
    TakeText(delivered, i, end);
    if (is_text_over_) return FinishReason::kStop;
  }
  return end.reason;
}

std::string Generation::TakeText(absl::Span<const TokenId> block, int i,
                                 const StopCondition::BlockEnd& end) {
  const bool is_end_token =
      i == end.num_kept - 1 &&
      (end.reason == FinishReason::kEos || end.reason == FinishReason::kStop);
  if (is_end_token) return "";
  TextStream::Piece piece = parts_.text.Append(block[i]);
  is_text_over_ = piece.stopped;
  return std::move(piece.text);
}

GenerationUpdate Generation::TakeBlock(int length_before, RoundResult& round,
                                       std::optional<FinishReason>& reason) {
  Session& session = parts_.session;
  const RoundStats& stats = round.stats;
  GenerationUpdate update = {
      .first_index = length_before - session.prompt_length(), .round = stats};
  finish_.num_draft_failures += stats.drafter.num_failures;
  finish_.num_misses +=
      stats.drafter.num_misses() + stats.verifier.num_misses();
  has_begun_ = true;

  const absl::Span<const TokenId> block =
      session.committed().From(length_before);
  const StopCondition::BlockEnd end = parts_.stop.Find(block, length_before);
  reason = end.reason;
  const TokenOrigin next_origin = stats.num_accepted < stats.num_drafted
                                      ? TokenOrigin::kReplacement
                                      : TokenOrigin::kBonus;
  for (int i = 0; i < end.num_kept; ++i) {
    update.tokens.push_back(
        {.id = block[i],
         .text = TakeText(block, i, end),
         .origin = i < stats.num_accepted ? TokenOrigin::kDraft : next_origin});
    if (session.logprobs().has_value()) {
      RowLogprobs& row = round.logprobs.at(i);
      update.tokens.back().logprob = row.tokens.at(0);
      update.tokens.back().top_logprobs = std::move(row.top);
    }
    if (is_text_over_) {
      reason = FinishReason::kStop;
      break;
    }
  }
  num_tokens_ += static_cast<int>(update.tokens.size());
  return update;
}

}  // namespace outrider
