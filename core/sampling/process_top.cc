// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/mutant.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/cut.h"
#include "core/sampling/cut_logits.h"
#include "core/sampling/known_logits.h"
#include "core/sampling/process.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// What float32 weights may be off by, and float64 sums: the first where even
// weights of 2^-126 are among them (docs/device-rows.md).
constexpr double kRestTolerance = 1e-5;
constexpr double kSumTolerance = 1e-12;

KnownLogits Moved(const TopAnswer& answer, const LogitMoves& moves) {
  std::vector<double> values;
  values.reserve(moves.tokens.size());
  for (size_t i = 0; i < moves.tokens.size(); ++i) {
    values.push_back(
        MovedLogit(moves, moves.tokens[i], double{answer.token_logits[i]}));
  }
  return KnownOf(answer, values);
}

// Top-p where tokens that are not known have a weight together: decided where
// the set is the same at both ends of what that weight may be, and ends among
// tokens that are above all others.
std::optional<Distribution> KeepMass(const Distribution& known, double rest,
                                     double bound_weight, double top_p) {
  std::optional<Distribution> kept;
  for (const double side : {-1.0, 1.0}) {
    const double total = (known.total() + rest * (1 + side * kRestTolerance)) *
                         (1 + side * kSumTolerance);
    const double mass = top_p * total / known.total();
    if (!(mass < 1)) return std::nullopt;
    Distribution some = KeepTop(known, known.support().size(), mass);
    if (kept.has_value() && kept->support() != some.support()) {
      return std::nullopt;
    }
    kept = std::move(some);
  }
  const auto least =
      std::min_element(kept->weights().begin(), kept->weights().end());
  if (!(*least > bound_weight * (1 + kSumTolerance))) return std::nullopt;
  return kept;
}

}  // namespace

std::optional<Distribution> ProcessTop(const TopAnswer& answer,
                                       const SamplingParams& params,
                                       const LogitMoves& moves) {
  // Others would have been moved by a text that was not asked about.
  if (TokensOf(moves) != answer.tokens) return std::nullopt;
  const KnownLogits known = Moved(answer, moves);
  const double maximum = Maximum(absl::MakeConstSpan(known.values));
  if (maximum == -std::numeric_limits<double>::infinity()) return std::nullopt;
  if (IsGreedy(params)) {
    const auto best =
        std::find(known.values.begin(), known.values.end(), maximum);
    return Distribution::OneHot(known.ids[best - known.values.begin()]);
  }

  const auto num_top = static_cast<int>(answer.ids.size());
  const double bound_weight =
      WeightOfLogit(known.bound, maximum, params.temperature);
  const double least =
      std::max(params.min_p, std::numeric_limits<double>::min());
  const bool is_closed = answer.is_all ||
                         (params.top_k > 0 && params.top_k <= num_top) ||
                         bound_weight < least * (1 - kSumTolerance);
  if (OUTRIDER_MUTANT(D2, is_closed, true)) {
    return WithIds(CutLogits(absl::MakeConstSpan(known.values), params), known);
  }
  // What others weigh, who are cut as well, is not known.
  if (params.top_p == 1 || params.min_p > 0 || params.top_k > 0) {
    return std::nullopt;
  }
  SamplingParams uncut = params;
  uncut.top_p = 1;
  const double rest = OUTRIDER_MUTANT(
      D3, WeightOfOthers(answer, maximum, params.temperature), 0.0);
  const auto kept =
      KeepMass(CutLogits(absl::MakeConstSpan(known.values), uncut), rest,
               bound_weight, params.top_p);
  if (!kept.has_value()) return std::nullopt;
  return WithIds(*kept, known);
}

}  // namespace outrider
