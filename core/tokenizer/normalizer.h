// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_NORMALIZER_H_
#define OUTRIDER_CORE_TOKENIZER_NORMALIZER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace outrider {

// What is done to text before it is cut into pieces.
struct NormalizerStep {
  enum class Kind {
    kNfc,      // Unicode normalisation form C
    kPrepend,  // `content` before a text that is not empty
    kReplace,  // `content` for every `pattern`, leftmost first
  };
  Kind kind = Kind::kNfc;
  std::string pattern = {};  // not empty in kReplace
  std::string content = {};
};

// Valid UTF-8 to valid UTF-8, one step after the other.
std::string Normalize(absl::Span<const NormalizerStep> steps,
                      absl::string_view text);

// Normalisation form C in O(n log n), also where thousands of combining marks
// stand in a row.
std::string ToNfc(absl::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_NORMALIZER_H_
