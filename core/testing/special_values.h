// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SPECIAL_VALUES_H_
#define OUTRIDER_CORE_TESTING_SPECIAL_VALUES_H_

#include <limits>

namespace outrider::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SPECIAL_VALUES_H_
