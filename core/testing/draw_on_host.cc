// SPDX-License-Identifier: Apache-2.0
#include "core/testing/draw_on_host.h"

#include <utility>

#include "core/sampling/coins.h"
#include "core/sampling/cut.h"
#include "core/sampling/process.h"

namespace outrider::testing {

std::optional<TokenId> DrawOnHost(const TopAnswer& answer, double temperature,
                                  const NextDraw& next) {
  const auto processed = ProcessTop(answer,
                                    {.temperature = temperature,
                                     .top_k = next.top_k,
                                     .top_p = next.top_p,
                                     .min_p = next.min_p},
                                    /*moves=*/{});
  if (!processed.has_value()) return std::nullopt;
  Distribution row = KeepTop(*processed, static_cast<size_t>(next.support_size),
                             next.support_mass);
  Coins coins(next.seed);
  if (next.is_coupled) {
    return row
        .support()[coins.Race(next.position, row.support(), row.weights())];
  }
  const Distribution q = next.round_weights ? std::move(row).RoundedToBFloat16()
                                            : row.Normalized();
  return q.support()[coins.Categorical(
      {Purpose::kDraft, next.position, next.generation}, q.weights())];
}

}  // namespace outrider::testing
