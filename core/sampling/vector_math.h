// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_
#define OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_

#include <cstdint>

#include "absl/types/span.h"

namespace outrider {

// The two loops over whole rows that every token pays for, written so that the
// compiler turns them into vector code, and without anything that depends on
// the CPU at hand: the same bits on every x86-64 machine.

// Replaces each x by e^x, for x <= 0; below -708 by 0. Relative error at most
// 4e-16. Not for NaN.
void ExpInPlace(absl::Span<double> values);

// Whether no value is NaN or +infinity, and whether any is above -infinity.
struct RowCheck {
  bool all_valid = true;
  bool any_possible = false;
};
RowCheck CheckRow(absl::Span<const float> values);

// The place of the greatest value, the first of equals; no NaN.
int Argmax(absl::Span<const float> values);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_VECTOR_MATH_H_
