// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_PRETOKENIZER_H_
#define OUTRIDER_CORE_TOKENIZER_PRETOKENIZER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/tokenizer/digits.h"
#include "core/tokenizer/split_pattern.h"

namespace outrider {

// When white space is put before a stretch of text (between added tokens) that
// does not begin with it.
enum class Prepend { kNever, kFirst, kAlways };

// How text is cut into the pieces that byte-pair merging sees.
struct PretokenizerSpec {
  enum class Kind {
    kNone,       // one piece, its symbols are characters
    kMetaspace,  // the same, with `replacement` for spaces, cut before each
    kByteLevel,  // cut by `pattern`, symbols are bytes
  };
  Kind kind = Kind::kNone;
  SplitPattern pattern = SplitPattern::kWhole;  // kByteLevel only
  Prepend prepend = Prepend::kNever;  // a space or `replacement`; kFirst: not
                                      // in kByteLevel
  std::string replacement = {};       // kMetaspace only
  bool cut_at_replacement = false;    // kMetaspace only
  Digits digits = Digits::kWithText;  // kByteLevel without `prepend` only
};

// Calls `visit` with each piece of `text`, in order. `is_first` says whether
// the stretch begins where the whole text does. `text` must be valid UTF-8.
void ForEachPiece(const PretokenizerSpec& spec, absl::string_view text,
                  bool is_first,
                  absl::FunctionRef<void(absl::string_view)> visit);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_PRETOKENIZER_H_
