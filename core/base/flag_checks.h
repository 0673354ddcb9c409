// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
#define OUTRIDER_CORE_BASE_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "core/base/number_range.h"

namespace outrider {

// What all programs hold their flags against. CLI::Range would let NaN pass,
// and words its errors as a library does.
CLI::Validator NumberIn(const NumberRange& range);
CLI::Validator NumberIn(double low, double high);  // both belong to it
// Takes `word` in place of a number too, unless that is empty.
CLI::Validator WholeNumberIn(uint64_t low, uint64_t high,
                             const std::string& word = "");

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
