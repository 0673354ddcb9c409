// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_MAY_GO_ON_AFTER_H_
#define OUTRIDER_DRAFTER_MAY_GO_ON_AFTER_H_

#include <variant>

#include "core/base/row_question.h"

namespace outrider {

// Whether a model may go on by itself after the row that is asked about.
inline bool MayGoOnAfter(const RowQuestion& question) {
  const auto* top = std::get_if<TopQuestion>(&question.what);
  return top != nullptr && top->next.has_value();
}

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_MAY_GO_ON_AFTER_H_
