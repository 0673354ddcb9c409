// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_SHORTEN_DRAFT_H_
#define OUTRIDER_COORDINATOR_ROUND_SHORTEN_DRAFT_H_

#include "core/sampling/draft.h"

namespace outrider {

// Leaves the first drafts, so many at most.
inline void Shorten(int most, Draft& draft) {
  if (draft.length() <= most) return;
  draft.tokens.resize(most);
  draft.distributions.erase(draft.distributions.begin() + most,
                            draft.distributions.end());
  if (!draft.confidences.empty()) draft.confidences.resize(most);
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_SHORTEN_DRAFT_H_
