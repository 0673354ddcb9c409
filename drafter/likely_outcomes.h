// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_LIKELY_OUTCOMES_H_
#define OUTRIDER_DRAFTER_LIKELY_OUTCOMES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"

namespace outrider {

// What the verification of drafts may come to: so many stand, and then comes
// this token.
struct LikelyOutcome {
  int num_accepted = 0;
  TokenId next_token = 0;
  double probability = 0;  // as far as a drafter can tell
};

// Drafts that are being verified.
struct InFlight {
  absl::Span<const TokenId> tokens = {};
  double acceptance = 0;  // of each of them, once those before it stand
  int max_accepted = 0;   // outcomes with more are not asked for
};

// The likeliest outcomes, at most `most`, the likeliest first. `rows` are the
// drafter's logits after each number of accepted tokens, from 0 to all: the
// token after so many is likely as the row has it at temperature 1, but that a
// draft which does not stand is not its own replacement. No coin is looked at,
// and nothing that verification brings, so whoever uses a draft for one of
// these if it is the outcome stays exact (docs/algorithm.md). Rows may be
// answers to AskOutcomes of the same. INTERNAL: rows that are no logits.
absl::StatusOr<std::vector<LikelyOutcome>> LikelyOutcomes(
    const LogitRows& rows, const InFlight& in_flight, int most);

// What a model may answer in place of these rows, a question for each.
std::vector<RowQuestion> AskOutcomes(const InFlight& in_flight, int most,
                                     int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_LIKELY_OUTCOMES_H_
