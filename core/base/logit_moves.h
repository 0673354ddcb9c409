// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LOGIT_MOVES_H_
#define OUTRIDER_CORE_BASE_LOGIT_MOVES_H_

#include <vector>

#include "core/base/token.h"

namespace outrider {

// A token whose logit bias and penalties move.
struct MovedToken {
  static constexpr int kNotInText = -1;

  TokenId token = 0;
  // How often it was generated, drafts included: 0 where it is in the prompt
  // alone, as far as penalties look at that.
  int num_generated = kNotInText;
  double bias = 0;
};

// What bias and penalties do to a row (core/sampling/adjust_logits.h). All
// other tokens keep their logits.
struct LogitMoves {
  double repetition_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<MovedToken> tokens = {};  // ascending
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_LOGIT_MOVES_H_
