// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_LENIENCE_H_
#define OUTRIDER_CORE_SAMPLING_LENIENCE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/distribution.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_history.h"

namespace outrider {

// Lossy acceptance: more drafts stand, and the output's law is no longer the
// target's (Leviathan et al. 2023, appendix A.5). Here l is the lenience, q the
// draft's row and p the target's:
//   temperature above 0: x stands with probability min(1, p(x) / (l q(x))),
//     and what is refused is replaced from norm(max(0, p - q)) as ever. So no
//     token comes more often than p / l, and none with q <= p more often than
//     p (AcceptPrefix);
//   temperature 0: x stands if p(x) >= l max p, by the row before it is
//     sharpened; else the argmax replaces it (the function below).
// l = 1 is exact, ties at temperature 0 included: no draft but the argmax of
// the lowest id stands.

// The row that judges `draft`, where `row` is what Process made of `logits`:
// below kGreedyTemperature and where the draft stands by lenience, all mass is
// on the draft; else it is `row` itself. The probabilities that are compared
// are after bias and penalties, at temperature 1, nothing cut. Arguments and
// errors are those of Process; INVALID_ARGUMENT where the row lacks the draft.
absl::StatusOr<Distribution> JudgingRow(Distribution row, TokenId draft,
                                        absl::Span<const float> logits,
                                        const SamplingParams& params,
                                        const TokenHistory& history);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_LENIENCE_H_
