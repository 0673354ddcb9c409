// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_CUT_H_
#define OUTRIDER_CORE_SAMPLING_CUT_H_

#include <cstddef>

#include "core/sampling/distribution.h"

namespace outrider {

// The smallest set of most probable tokens whose mass reaches `mass` (the token
// that crosses the edge stays), but no more than `most` of them; ties go to the
// lowest id, sums are in double precision. A mass of 1 keeps them all. `mass`
// is positive, `most` at least 1.
//
// It looks at the row alone: a draft row that is cut by it before sampling
// stays exact (docs/algorithm.md), and its size tells nothing of the token.
Distribution KeepTop(const Distribution& row, size_t most, double mass = 1);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_CUT_H_
