// SPDX-License-Identifier: Apache-2.0
#include "drafter/measure_draft.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/node/measure.h"
#include "core/sampling/coins.h"
#include "core/wire/node_calls.h"

namespace outrider {

absl::StatusOr<double> MeasureDraftStep(DraftStrategy& strategy, int vocab_size,
                                        int context_length) {
  using Clock = std::chrono::steady_clock;
  constexpr int kDraftLength = 4;
  constexpr int kRepeats = 60;
  const int length = std::min(128, context_length - kDraftLength);
  std::vector<TokenId> committed;
  for (int i = 0; i < length; ++i) {
    committed.push_back((i * 7919 + 13) % vocab_size);
  }
  Coins coins(/*seed=*/1);
  DraftContext context = {
      .session = SessionId::Random(),
      .committed = committed,
      .keep_length = 0,
      .max_draft_tokens = kDraftLength,
      .options = {.support_size = std::min(kDefaultSupportSize, vocab_size)},
      .sampling = {.temperature = 0},
      .random = &coins};
  OUTRIDER_RETURN_IF_ERROR(strategy.Propose(context).status());
  // From here on as in a round: one committed token is new.
  context.keep_length = length - 1;
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    context.step = i;
    const Clock::time_point start = Clock::now();
    OUTRIDER_RETURN_IF_ERROR(strategy.Propose(context).status());
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count() /
        kDraftLength);
  }
  strategy.Release(context.session);
  return Median(std::move(seconds));
}

}  // namespace outrider
