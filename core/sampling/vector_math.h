// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_
#define OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace outrider {

// The loops over whole rows that every token pays for. Each but PlacesAtLeast,
// which computes nothing, is compiled for the baseline of the platform, for
// AVX2 and for AVX-512, from the same lines and without fused multiply-adds,
// and the one for the CPU at hand is taken: the same bits of each, but for the
// sign of a zero that is the maximum or the minimum.

// e^x for x <= 0, into `values` itself; below -708 it is 0. Relative error at
// most 4e-16. Not for NaN.
void ExpInPlace(absl::Span<double> values);

// weights[i] = e^((logits[i] - maximum) / temperature), as ExpInPlace has it;
// no logit is above `maximum`. The spans are equally long, and may be the same.
void SoftmaxWeights(absl::Span<const float> logits, double maximum,
                    double temperature, absl::Span<double> weights);
void SoftmaxWeights(absl::Span<const double> logits, double maximum,
                    double temperature, absl::Span<double> weights);

// The sum, always in this order: eight running sums, value i in sum i mod 8,
// and these from the first to the last.
double Sum(absl::Span<const double> values);

// How many values are at least `least`.
size_t CountAtLeast(absl::Span<const double> values, double least);
// Which these are, ascending.
std::vector<int> PlacesAtLeast(absl::Span<const double> values, double least);

// Whether no value is NaN or +infinity, and whether any is above -infinity.
struct RowCheck {
  bool all_valid = true;
  bool any_possible = false;
};
RowCheck CheckRow(absl::Span<const float> values);

// The greatest value; -infinity where there is none. No NaN.
float Maximum(absl::Span<const float> values);
double Maximum(absl::Span<const double> values);
// The least; infinity where there is none. No NaN.
float Minimum(absl::Span<const float> values);

// A value that at least `count` values reach, to choose candidates by for the
// first `count`: of the maxima of 4 `count` parts of the row the count-th, so
// that not many more reach it. -infinity, which all reach, where `count` is
// more than a 16th of them and looking would cost more than it saves. `count`
// is positive; no NaN.
float BoundOfTop(absl::Span<const float> values, size_t count);
double BoundOfTop(absl::Span<const double> values, size_t count);

// The place of the greatest value, the first of equals; no NaN.
int Argmax(absl::Span<const float> values);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_
