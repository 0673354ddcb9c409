// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/pretokenizer.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace outrider {
namespace {

bool NeedsPrefix(const PretokenizerSpec& spec, absl::string_view text,
                 absl::string_view prefix, bool is_first) {
  if (spec.prepend == Prepend::kNever) return false;
  if (spec.prepend == Prepend::kFirst && !is_first) return false;
  return !absl::StartsWith(text, prefix);
}

void VisitStretch(const PretokenizerSpec& spec, absl::string_view text,
                  absl::FunctionRef<void(absl::string_view)> visit) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = PieceEnd(spec.pattern, text, begin);
    if (spec.cut_at_replacement) {
      end = std::min(text.find(spec.replacement, begin + 1), text.size());
    }
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace

void ForEachPiece(const PretokenizerSpec& spec, absl::string_view text,
                  bool is_first,
                  absl::FunctionRef<void(absl::string_view)> visit) {
  std::string changed;
  absl::string_view prefix = " ";
  if (spec.kind == PretokenizerSpec::Kind::kMetaspace) {
    changed = absl::StrReplaceAll(text, {{" ", spec.replacement}});
    text = changed;
    prefix = spec.replacement;
  }
  if (NeedsPrefix(spec, text, prefix, is_first)) {
    changed = std::string(prefix).append(text.data(), text.size());
    text = changed;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = StretchEnd(spec.digits, text, begin);
    VisitStretch(spec, text.substr(begin, end - begin), visit);
    begin = end;
  }
}

}  // namespace outrider
