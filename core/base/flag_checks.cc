// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_checks.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace outrider {

CLI::Validator NumberIn(double low, double high) {
  const std::string range = absl::StrCat("[", low, " - ", high, "]");
  return {
      [low, high, range](std::string& text) -> std::string {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= low && value <= high) {
          return "";
        }
        return absl::StrCat(text, " is not a number in ", range);
      },
      absl::StrCat("FLOAT in ", range)};
}

}  // namespace outrider
