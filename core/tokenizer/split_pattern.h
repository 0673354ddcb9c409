// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_SPLIT_PATTERN_H_
#define OUTRIDER_CORE_TOKENIZER_SPLIT_PATTERN_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace outrider {

// The regular expressions that cut a text into words before byte-pair merging.
// They are known by their exact text and matched by hand-written code: no
// expression from a file is ever compiled.
enum class SplitPattern { kWhole, kGpt2, kLlama3, kQwen2 };

// None if this is not one of the expressions above, character for character.
std::optional<SplitPattern> KnownSplitPattern(absl::string_view regex);

// The end of the piece of valid UTF-8 that starts at `begin` < text.size().
// The pieces cover the text; finding all of them takes linear time.
// \p{L}, \p{N} and \s are general categories and White_Space, as in Oniguruma;
// ICU 72 and the reference (tokenizers 0.22) agree on every code point.
size_t PieceEnd(SplitPattern pattern, absl::string_view text, size_t begin);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_SPLIT_PATTERN_H_
