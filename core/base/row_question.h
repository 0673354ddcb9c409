// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_ROW_QUESTION_H_
#define OUTRIDER_CORE_BASE_ROW_QUESTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/base/logit_moves.h"
#include "core/base/token.h"

namespace outrider {

class Distribution;  // of core/sampling; an answer only hands it on

// What sampling asks of a row of logits, so that a model whose rows are on a
// device answers there, and a few KB come to the host in place of the row. A
// token's weight is e^((its logit - the greatest) / temperature). A row that is
// none (NaN, +infinity, all masked) is not answered.

inline constexpr int kMaxTopLogits = 1024;
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
};

struct DrawAnswer {
  std::vector<double> support_weights = {};
  double tail = 0;  // the weight of all other tokens
  std::optional<TokenId> drawn = {};
};

// The greatest logits, of which a cut row is made, and those of `tokens`, which
// penalties and bias move: these are told whatever they are, and count neither
// among the greatest nor among the others.
struct TopAnswer {
  std::vector<TokenId> tokens = {};  // as asked
  std::vector<float> token_logits = {};
  std::vector<TokenId> ids = {};  // ascending
  std::vector<float> logits = {};
  bool is_all = false;  // there are no others but masked ones
  double rest = 0;      // the weight of all others, the greatest of `ids` has 1
  // If asked for: the probability at temperature 1 of the greatest logit, that
  // of `tokens` among them, as the model gave it.
  double top_probability = 0;
  // What TopQuestion::suffices made of it to see that, so that nobody does so
  // again: what is drawn from (AskTop).
  std::shared_ptr<const Distribution> row = {};
};

// How the token after a row is drawn from a TopAnswer without `tokens`, as the
// drafter draws (DraftOptions): a model may go on with it by itself. What it
// takes is a guess: which token comes next, and from which weights it is drawn,
// is for whoever asked to say, by the answer.
struct NextDraw {
  int top_k = 0;  // 0, and min_p 0: other tokens have a part in top_p's mass
  double min_p = 0;
  double top_p = 1;
  int support_size = 0;
  double support_mass = 1;
  bool round_weights = false;
  // Nothing comes after a row whose top_probability, times those of the rows
  // before it, is less.
  double min_probability = 0;
  double probability = 1;  // of the rows before it
  bool is_coupled = false;
  uint64_t seed = 0;
  uint64_t position = 0;  // of the token
  uint64_t generation = 0;
};

struct TopQuestion {
  int count = 0;  // of the greatest, ties to the lowest id; -inf never is one
  std::vector<TokenId> tokens = {};  // ascending
  bool wants_top_probability = false;
  // Whether an answer is enough; else the whole row is wanted. A function of
  // the row and what stands before it, never of coins or of what is drafted
  // there.
  std::function<bool(TopAnswer&)> suffices = {};
  std::optional<NextDraw> next = {};
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
