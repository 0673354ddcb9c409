// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_checks.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outrider {

CLI::Validator NumberIn(const NumberRange& range) {
  const auto check = [range](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && range.Has(value)) return "";
    return absl::StrCat("needs a number ", InWords(range), ", not \"", text,
                        "\"");
  };
  return {check, /*validator_desc=*/""};
}

CLI::Validator NumberIn(double low, double high) {
  return NumberIn({.low = low, .high = high});
}

CLI::Validator WholeNumberIn(uint64_t low, uint64_t high,
                             const std::string& word) {
  const auto check = [low, high, word](const std::string& text) -> std::string {
    uint64_t value = 0;
    const bool is_word = !word.empty() && text == word;
    const bool is_number =
        absl::SimpleAtoi(text, &value) && value >= low && value <= high;
    if (is_word || is_number) return "";
    return absl::StrCat("needs a whole number between ", low, " and ", high,
                        word.empty() ? "" : ", or ", word, ", not \"", text,
                        "\"");
  };
  return {check, /*validator_desc=*/""};
}

CLI::Validator OneOf(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) -> std::string {
    if (absl::c_linear_search(words, text)) return "";
    return absl::StrCat("needs one of ", absl::StrJoin(words, ", "), ", not \"",
                        text, "\"");
  };
  return {check, /*validator_desc=*/""};
}

}  // namespace outrider
