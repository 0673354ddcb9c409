// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_RESIDUAL_H_
#define OUTRIDER_CORE_SAMPLING_RESIDUAL_H_

#include <cstdint>
#include <vector>

#include "core/base/token.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/distribution.h"
#include "core/sampling/random_source.h"
#include "core/sampling/target_row.h"

namespace outrider {

// What the target has that the draft has not given: max(0, share p - q) over
// the support of q, in its order, and last its mass off it, where q is 0. Not
// normalised. `share` in [0, 1] is 1 but for block verification.
std::vector<double> ResidualWeights(const TargetRow& p, const Distribution& q,
                                    double share = 1);

// The verdict after `num_accepted` drafts: its next token, which replaces the
// refused one at `position`, is drawn from norm(max(0, share p - q)). One coin:
// RESIDUAL of `position`.
Verdict ReplaceRefused(int num_accepted, const TargetRow& p,
                       const Distribution& q, uint64_t position,
                       RandomSource& random, double share = 1);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_RESIDUAL_H_
