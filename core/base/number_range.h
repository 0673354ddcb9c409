// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_NUMBER_RANGE_H_
#define OUTRIDER_CORE_BASE_NUMBER_RANGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider {

// The numbers that an option may have: what a server holds requests against,
// and programs their flags. NaN is in no range.
struct NumberRange {
  double low = 0;
  double high = 0;
  bool has_low = true;  // the ends themselves
  bool has_high = true;

  constexpr bool Has(double value) const {
    return (has_low ? value >= low : value > low) &&
           (has_high ? value <= high : value < high);
  }
};

// "between 0 and 10", "above 0 and at most 1", "at least 0 and below 1".
std::string InWords(const NumberRange& range);

// INVALID_ARGUMENT names the option, what would be right and the value. `note`
// follows the range, such as ", where 0 is off".
absl::Status CheckNumber(absl::string_view name, double value,
                         const NumberRange& range, absl::string_view note = "");

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_NUMBER_RANGE_H_
