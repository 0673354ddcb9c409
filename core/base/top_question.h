// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_TOP_QUESTION_H_
#define OUTRIDER_CORE_BASE_TOP_QUESTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/token.h"

namespace outrider {

class Distribution;  // of core/sampling; an answer only hands it on

// What is asked of a row by its greatest logits (row_question.h).

inline constexpr int kMaxTopLogits = 1024;

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
  // there. Called on any thread, at the same time for several rows.
  std::function<bool(TopAnswer&)> suffices = {};
  std::optional<NextDraw> next = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_TOP_QUESTION_H_
