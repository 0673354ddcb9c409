// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_WANTED_ROW_H_
#define OUTRIDER_CORE_CUDA_MODEL_WANTED_ROW_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/model/causal_lm.h"
#include "core/model/logit_rows.h"

namespace outrider {

// A row of logits on the device, and what comes of it on the host.
struct WantedRow {
  const RowQuestion* question = nullptr;  // null: the whole row
  // It is the last of this extension's, which may go on from it; or null.
  const Extension* extension = nullptr;
  bool goes_on = false;   // and does: its question is answered on the way
  bool is_asked = false;  // its question, by RowScorer::Ask
  LogitRows::AskedRow result = {};
  // What it went on with, and the row of each.
  std::vector<TokenId> drawn = {};
  std::vector<LogitRows::AskedRow> drawn_rows = {};
};

// Whether the row itself is wanted after all, as its answer does not decide.
// Asked once answers were taken.
inline bool IsUndecided(const WantedRow& row) {
  return !row.result.answer.has_value() && row.result.logits == nullptr;
}

// The greatest logit's probability at temperature 1, by the kernel's mass,
// which leaves out the tokens that were asked for by themselves. 0: there is
// none.
inline double TopProbabilityOf(const TopAnswer& answer,
                               const kernels::cuda::TopRowResult& found) {
  const auto greatest = [](const std::vector<float>& logits) {
    double most = -std::numeric_limits<double>::infinity();
    for (const float x : logits) most = std::max(most, double{x});
    return most;
  };
  const double of_others = greatest(answer.logits);
  const double top = std::max(of_others, greatest(answer.token_logits));
  if (std::isinf(top)) return 0;
  double total =
      answer.logits.empty() ? 0 : found.mass * std::exp(of_others - top);
  for (const float x : answer.token_logits) total += std::exp(x - top);
  return 1 / total;
}

// The answer that a kernel found; `ids` and `logits` are where its greatest
// begin, `token_logits` those of the question's own tokens. Nothing where the
// whole row is wanted after all.
inline std::optional<RowAnswer> TopAnswerOf(
    const TopQuestion& question, const kernels::cuda::TopRowResult& found,
    const int* ids, const float* logits, const float* token_logits) {
  if (!found.is_valid) return std::nullopt;
  const size_t num_tokens = question.tokens.size();
  TopAnswer answer = {.tokens = question.tokens,
                      .token_logits = {token_logits, token_logits + num_tokens},
                      .ids = {ids, ids + found.count},
                      .logits = {logits, logits + found.count},
                      .is_all = found.count < question.count,
                      .rest = found.rest};
  if (question.wants_top_probability) {
    answer.top_probability = TopProbabilityOf(answer, found);
  }
  if (question.suffices && !question.suffices(answer)) return std::nullopt;
  return answer;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_WANTED_ROW_H_
