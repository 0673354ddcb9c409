// SPDX-License-Identifier: Apache-2.0
#include "core/wire/expected_weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outrider {

absl::Status CheckExpected(const ExpectedWeights& expected,
                           absl::string_view found) {
  if (expected.empty()) return absl::OkStatus();
  const bool is_expected =
      std::any_of(expected.begin(), expected.end(),
                  [&](const std::string& one) { return found == one; });
  if (is_expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("its weights are ", found.empty() ? "none" : found,
                   ", but --expect-weights ", absl::StrJoin(expected, " or ")));
}

std::string WhyNoHash(const std::string& text) {
  const bool is_hash =
      text.size() == 64 &&
      text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? ""
                 : "not the SHA-256 of weights (64 hex digits, in lower case), "
                   "which a node logs at its start";
}

}  // namespace outrider
