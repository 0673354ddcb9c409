// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_PROCESS_H_
#define OUTRIDER_CORE_SAMPLING_PROCESS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/sampling/distribution.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_history.h"

namespace outrider {

// Logits to the distribution that tokens are drawn from: one function for
// draft, verification and plain decoding, on every process. The order is that
// of vLLM's sampler, ties go to the lowest id, all in double precision:
//   1. logit bias, repetition, frequency and presence penalty, by the history
//      of this very place (adjust_logits.h);
//   2. below kGreedyTemperature: the argmax, alone;
//   3. temperature;
//   4. min-p: tokens less probable than min_p times the most probable one go;
//   5. top-k: exactly k stay;
//   6. softmax with the maximum subtracted;
//   7. top-p: the smallest set whose mass reaches top_p stays.
// `logits` is [vocab_size] float32 without the padding of the model's head;
// -inf is a mask. `params` are valid. INTERNAL where a logit is NaN or +inf,
// all are -inf, or history or bias name a token that the row does not have.
absl::StatusOr<Distribution> Process(absl::Span<const float> logits,
                                     const SamplingParams& params,
                                     const TokenHistory& history);

// The same from the greatest logits of a row (row_question.h), where these
// decide which tokens stay: then it is what Process makes of the whole row, to
// the last bit. Nothing where they do not: that depends on the row, `params`
// and `moves` alone, which are MovesOf them and what stands before the row.
std::optional<Distribution> ProcessTop(const TopAnswer& answer,
                                       const SamplingParams& params,
                                       const LogitMoves& moves);

// INTERNAL where a logit is NaN or +inf, or all are -inf.
absl::Status CheckLogits(absl::Span<const float> logits);

// The token of the highest logit, lowest id on ties, and how far ahead of the
// second it is (a gap of 0 is a tie). `logits` must hold no NaN.
struct ArgmaxAndGap {
  int argmax = 0;
  float gap = 0;
};
ArgmaxAndGap FindArgmax(absl::Span<const float> logits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_PROCESS_H_
