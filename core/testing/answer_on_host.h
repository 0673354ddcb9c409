// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_ANSWER_ON_HOST_H_
#define OUTRIDER_CORE_TESTING_ANSWER_ON_HOST_H_

#include <optional>

#include "absl/types/span.h"
#include "core/base/row_question.h"

namespace outrider::testing {

// The answer to a question about a row (row_question.h), by its definition and
// in double precision: what a device's is held against. Nothing where the row
// has no answer, or none that is enough. Of the greatest logits at most
// `most_top` are told.
std::optional<RowAnswer> AnswerOnHost(const RowQuestion& question,
                                      absl::Span<const float> logits,
                                      int most_top = kMaxTopLogits);

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_ANSWER_ON_HOST_H_
