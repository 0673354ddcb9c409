// SPDX-License-Identifier: Apache-2.0
#include "drafter/measure_draft.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/solo_session.h"
#include "core/node/describe_model.h"
#include "core/node/measure.h"
#include "core/sampling/coins.h"
#include "core/wire/node_calls.h"
#include "drafter/draft_pass.h"
#include "drafter/load_drafter.h"

namespace outrider {
namespace {

constexpr int kDraftLength = 4;

// One draft after the first `cached_length` tokens of the context's, which are
// cached: in as many passes as a round's takes.
absl::Status RunDraft(const DraftStrategy& strategy, SoloSession& session,
                      const DraftContext& context, int cached_length) {
  const auto drafting = strategy.Begin(context, context.committed.size());
  const Draft& draft = drafting->draft();
  absl::Span<const TokenId> tokens = context.committed.subspan(cached_length);
  while (true) {
    const DraftPass pass = NextPass(*drafting, context.max_draft_tokens);
    OUTRIDER_ASSIGN_OR_RETURN(
        const LogitRows rows,
        session.Extend(cached_length, tokens, pass.num_rows,
                       {&pass.question, static_cast<size_t>(pass.num_rows)},
                       pass.max_drawn));
    OUTRIDER_ASSIGN_OR_RETURN(const AfterPass next, TakePass(*drafting, rows));
    if (next == AfterPass::kComplete) return absl::OkStatus();
    cached_length =
        static_cast<int>(context.committed.size()) + draft.length() - 1;
    tokens = absl::MakeConstSpan(draft.tokens).last(1);
  }
}

}  // namespace

absl::StatusOr<double> MeasureDraftStep(const DraftStrategy& strategy,
                                        CausalLm& model, int vocab_size) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRepeats = 60;
  const int length = std::min(128, model.info().context_length - kDraftLength);
  std::vector<TokenId> committed;
  for (int i = 0; i < length; ++i) {
    committed.push_back((i * 7919 + 13) % vocab_size);
  }
  OUTRIDER_ASSIGN_OR_RETURN(SoloSession session,
                            SoloSession::Open(model, length + kDraftLength));

  Coins coins(/*seed=*/1);
  DraftContext context = {
      .committed = committed,
      .max_draft_tokens = kDraftLength,
      .options = {.support_size = std::min(kDefaultSupportSize, vocab_size)},
      .sampling = {.temperature = 0},
      .seed = 1,
      .random = &coins};
  OUTRIDER_RETURN_IF_ERROR(RunDraft(strategy, session, context, 0));
  // What follows is as in a round: one committed token is new.
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    context.step = i;
    const Clock::time_point start = Clock::now();
    OUTRIDER_RETURN_IF_ERROR(RunDraft(strategy, session, context, length - 1));
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count() /
        kDraftLength);
  }
  return Median(std::move(seconds));
}

absl::Status PrintDraftMeasurement(const NodeFlags& flags,
                                   LoadedModel& loaded) {
  const NodeDescription& description = loaded.description;
  OUTRIDER_ASSIGN_OR_RETURN(
      const double seconds,
      MeasureDraftStep(*MakeStrategy(description), *loaded.model,
                       description.vocab_size));
  std::cout << (flags.json
                    ? absl::StrFormat(
                          "{\"draft_step_ms\": %.6f, \"strategy\": \"%s\"}\n",
                          1e3 * seconds, description.draft_strategy)
                    : absl::StrFormat("%s: %.3f ms a draft token\n",
                                      Summary(description), 1e3 * seconds));
  return absl::OkStatus();
}

}  // namespace outrider
