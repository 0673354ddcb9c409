// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_PLACES_AT_LEAST_H_
#define OUTRIDER_CORE_KERNELS_PLACES_AT_LEAST_H_

#include <cstddef>

#include "absl/types/span.h"

namespace outrider::kernels {

// Writes to `places`, which has room for all, where the values are that are at
// least `least`, ascending; says how many these are. No compiler makes vectors
// of the plain loop, so there are some by hand, which find the same.
size_t PlacesAtLeast(absl::Span<const double> values, double least,
                     int* places);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_PLACES_AT_LEAST_H_
