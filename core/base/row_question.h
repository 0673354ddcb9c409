// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_ROW_QUESTION_H_
#define OUTRIDER_CORE_BASE_ROW_QUESTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/base/logit_moves.h"
#include "core/base/token.h"
#include "core/base/top_question.h"

namespace outrider {

// What sampling asks of a row of logits, so that a model whose rows are on a
// device answers there, and a few KB come to the host in place of the row. A
// token's weight is e^((its logit - the greatest) / temperature). A row that is
// none (NaN, +infinity, all masked) is not answered.

inline constexpr size_t kMaxAskedTokens = 4096;

// How the target sees a draft's support, and one token drawn with numbers of
// the host's coins: for rows that are cut nowhere. Weights are those of the
// logits as they have been moved.
struct DrawQuestion {
  // What each token has for noise in the coupled rule's race (Coins::Race).
  struct Noise {
    uint64_t seed = 0;
    uint64_t position = 0;
  };

  absl::Span<const TokenId> support = {};  // ascending
  double uniform = 0;                      // draws a token off the support
  std::optional<Noise> noise = {};  // or draws from the row, with no support
  LogitMoves moves = {};
  // What is told of the row besides: log-probabilities are made of it.
  std::optional<TopQuestion> scored = {};
};

struct DrawAnswer {
  std::vector<double> support_weights = {};
  double tail = 0;  // the weight of all other tokens
  std::optional<TokenId> drawn = {};
  float drawn_logit = 0;  // its own, as the model gave it
  std::optional<TopAnswer> scored = {};
};

struct RowQuestion {
  int vocab_size = 0;      // of its tokens: padding of the model's head is none
  double temperature = 0;  // 0: the argmax alone has weight
  // Nothing: the whole row.
  std::variant<std::monostate, DrawQuestion, TopQuestion> what = {};
};

using RowAnswer = std::variant<DrawAnswer, TopAnswer>;

// A row as it comes from a model: its logits, or the answer in their place.
struct RowView {
  absl::Span<const float> logits = {};
  const RowAnswer* answer = nullptr;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_ROW_QUESTION_H_
