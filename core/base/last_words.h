// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LAST_WORDS_H_
#define OUTRIDER_CORE_BASE_LAST_WORDS_H_

#include "absl/strings/string_view.h"

namespace outrider {

// Why a program ends, to standard error: "PROGRAM: WHY", or a line of the log
// where that is JSON, as what collects it could not read another.
void SayWhyItEnds(absl::string_view program, absl::string_view why);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_LAST_WORDS_H_
