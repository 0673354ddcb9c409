// SPDX-License-Identifier: Apache-2.0
#include "core/base/number_range.h"

#include "absl/strings/str_cat.h"

namespace outrider {

std::string InWords(const NumberRange& range) {
  if (range.has_low && range.has_high) {
    return absl::StrCat("between ", range.low, " and ", range.high);
  }
  return absl::StrCat(range.has_low ? "at least " : "above ", range.low,
                      range.has_high ? " and at most " : " and below ",
                      range.high);
}

absl::Status CheckNumber(absl::string_view name, double value,
                         const NumberRange& range, absl::string_view note) {
  if (range.Has(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be ", InWords(range), note, ", not ", value));
}

}  // namespace outrider
