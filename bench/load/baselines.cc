// SPDX-License-Identifier: Apache-2.0
#include "bench/load/baselines.h"

#include "absl/strings/str_format.h"

namespace outrider::bench {

std::optional<double> OrNone(double speedup) {
  if (speedup <= 0) return std::nullopt;
  return speedup;
}

std::string TimesText(double speedup) {
  return speedup > 0 ? absl::StrFormat("%.2f", speedup) : "";
}

void NotePlainNetwork(const Baselines& baselines, Measurement& measured) {
  const bool is_plain = measured.point.cell.k == 0;
  const Measurement* const plain = is_plain ? &measured : baselines.plain;
  if (plain == nullptr) return;
  measured.plain_network_token_ms = plain->token_ms.mean;
  measured.plain_network_tokens_per_second = plain->tokens_per_second;
}

void NotePlainVerifier(const Baselines& baselines, Measurement& measured) {
  const Cell& cell = measured.point.cell;
  const bool is_alone = cell.k == 0 && cell.load == Load{};
  const Measurement* const alone = is_alone ? &measured : baselines.alone;
  if (alone == nullptr) return;
  measured.plain_token_ms = alone->split.verify_ms / alone->passes_per_round();
}

}  // namespace outrider::bench
