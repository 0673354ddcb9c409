// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_DRAW_ON_HOST_H_
#define OUTRIDER_CORE_TESTING_DRAW_ON_HOST_H_

#include <optional>

#include "core/base/row_question.h"
#include "core/base/token.h"

namespace outrider::testing {

// The token that a drafter draws from the greatest logits of a row, as `next`
// has it, coins included: what a device's is held against. Nothing where they
// do not decide.
std::optional<TokenId> DrawOnHost(const TopAnswer& answer, double temperature,
                                  const NextDraw& next);

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_DRAW_ON_HOST_H_
