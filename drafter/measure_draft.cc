// SPDX-License-Identifier: Apache-2.0
#include "drafter/measure_draft.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/solo_session.h"
#include "core/node/describe_model.h"
#include "core/node/measure.h"
#include "core/sampling/coins.h"
#include "core/sampling/draft_options.h"
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

// The median time of a token, in seconds, in drafts after `committed` at this
// temperature.
absl::StatusOr<double> MeasureStep(const DraftStrategy& strategy,
                                   SoloSession& session,
                                   absl::Span<const TokenId> committed,
                                   int vocab_size, double temperature) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRepeats = 30;
  Coins coins(/*seed=*/1);
  // They are a generation's: what a device is asked, and so what it has to do,
  // depends on them.
  OUTRIDER_ASSIGN_OR_RETURN(
      const DraftOptions options,
      Resolve(/*overrides=*/{}, kGenerationDraftOptions, vocab_size));
  DraftContext context = {.committed = committed,
                          .max_draft_tokens = kDraftLength,
                          .options = options,
                          .sampling = {.temperature = temperature},
                          .seed = 1,
                          .random = &coins};
  OUTRIDER_RETURN_IF_ERROR(RunDraft(strategy, session, context, 0));
  // What follows is as in a round: one committed token is new.
  const int cached_length = static_cast<int>(committed.size()) - 1;
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    context.step = i;
    const Clock::time_point start = Clock::now();
    OUTRIDER_RETURN_IF_ERROR(
        RunDraft(strategy, session, context, cached_length));
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count() /
        kDraftLength);
  }
  return Median(std::move(seconds));
}

}  // namespace

absl::StatusOr<DraftStepTimes> MeasureDraftStep(const DraftStrategy& strategy,
                                                CausalLm& model,
                                                int vocab_size) {
  const int room = model.info().context_length;
  OUTRIDER_RETURN_IF_ERROR(CheckContext(room, 1 + kDraftLength));
  const int length = std::min(128, room - kDraftLength);
  std::vector<TokenId> committed;
  for (int i = 0; i < length; ++i) {
    committed.push_back((i * 7919 + 13) % vocab_size);
  }
  OUTRIDER_ASSIGN_OR_RETURN(SoloSession session,
                            SoloSession::Open(model, length + kDraftLength));
  DraftStepTimes times;
  OUTRIDER_ASSIGN_OR_RETURN(
      times.greedy, MeasureStep(strategy, session, committed, vocab_size, 0));
  OUTRIDER_ASSIGN_OR_RETURN(
      times.sampled, MeasureStep(strategy, session, committed, vocab_size, 1));
  return times;
}

absl::Status PrintDraftMeasurement(const NodeFlags& flags,
                                   LoadedModel& loaded) {
  const NodeDescription& description = loaded.description;
  OUTRIDER_ASSIGN_OR_RETURN(
      const DraftStepTimes times,
      MeasureDraftStep(*MakeStrategy(description), *loaded.model,
                       description.vocab_size));
  // N-grams have none.
  const std::string& kernels = description.numerics;
  return Print(
      flags.json
          ? absl::StrFormat("{\"draft_step_ms\": %.6f, "
                            "\"draft_sampled_step_ms\": %.6f, "
                            "\"strategy\": \"%s\", \"kernels\": \"%s\"}\n",
                            1e3 * times.greedy, 1e3 * times.sampled,
                            description.draft_strategy, kernels)
          : absl::StrFormat(
                "%s%s: %.3f ms a draft token, %.3f at temperature 1\n",
                Summary(description),
                kernels.empty() ? "" : absl::StrCat(", kernels ", kernels),
                1e3 * times.greedy, 1e3 * times.sampled));
}

}  // namespace outrider
