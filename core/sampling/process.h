// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_PROCESS_H_
#define OUTRIDER_CORE_SAMPLING_PROCESS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/sampling/distribution.h"
#include "core/sampling/sampling_params.h"

namespace outrider {

// Logits to the distribution that tokens are drawn from: one function for
// draft, verification and plain decoding, on every process. In this order:
// temperature (argmax below kGreedyTemperature), top-k, softmax with the
// maximum subtracted, top-p; all in double precision, ties to the lowest id.
// `logits` is [vocab_size] float32 without the padding of the model's head;
// -inf is a mask. INTERNAL where a logit is NaN or +inf, or all are -inf.
absl::StatusOr<Distribution> Process(absl::Span<const float> logits,
                                     const SamplingParams& params);

// The top `support_size` tokens of a draft row, ties to the lowest id. The cut
// comes before sampling, so that the row drawn from is the row sent.
Distribution CutToSupport(const Distribution& row, int support_size);

// The token of the highest logit, lowest id on ties, and how far ahead of the
// second it is (a gap of 0 is a tie). `logits` must hold no NaN.
struct ArgmaxAndGap {
  int argmax = 0;
  float gap = 0;
};
ArgmaxAndGap FindArgmax(absl::Span<const float> logits);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_PROCESS_H_
