// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_CHI_SQUARE_H_
#define OUTRIDER_CORE_TESTING_CHI_SQUARE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace outrider::testing {

// Pearson's test of counts against probabilities. Cells that expect fewer than
// 20 are pooled into one; a count in a cell of probability 0 is infinite.
struct ChiSquare {
  double statistic = 0;
  int degrees_of_freedom = 0;
  double critical = 0;  // exceeded by chance once in 1e9
};
ChiSquare TestCounts(absl::Span<const int64_t> counts,
                     absl::Span<const double> probabilities);

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_CHI_SQUARE_H_
