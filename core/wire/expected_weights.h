// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_EXPECTED_WEIGHTS_H_
#define OUTRIDER_CORE_WIRE_EXPECTED_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider {

// What --expect-weights names: hashes as in NodeDescription. Empty: whatever
// there is.
using ExpectedWeights = std::vector<std::string>;

// FAILED_PRECONDITION where weights are expected and `found` is none of them.
// It has both hashes in full, as somebody has to compare or copy them.
absl::Status CheckExpected(const ExpectedWeights& expected,
                           absl::string_view found);

// The command line asks why `text` is no hash of weights; empty where it is.
std::string WhyNoHash(const std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_EXPECTED_WEIGHTS_H_
