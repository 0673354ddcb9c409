// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
#define OUTRIDER_CORE_BASE_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>

namespace outrider {

// A number in [low, high]. Unlike CLI::Range, which lets it pass, this refuses
// NaN.
CLI::Validator NumberIn(double low, double high);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
