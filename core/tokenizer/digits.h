// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_DIGITS_H_
#define OUTRIDER_CORE_TOKENIZER_DIGITS_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace outrider {

// How numeric characters are cut off before a pattern sees the text, as by the
// Digits of a tokenizer.json.
enum class Digits {
  kWithText,   // not at all
  kRunsAlone,  // each run of them is a stretch
  kEachAlone,  // each of them is one
};

// The end of the stretch of valid UTF-8 that starts at `begin` < text.size().
// To a pattern a stretch is a whole text: white space before a digit ends it.
// Numeric are the general categories Nd, Nl and No of Unicode 17, which
// tokenizers 0.23 goes by, where ICU is older too.
size_t StretchEnd(Digits digits, absl::string_view text, size_t begin);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_DIGITS_H_
