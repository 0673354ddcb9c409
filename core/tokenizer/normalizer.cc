// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/base/check.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

// Marks in a row that no language has (Unicode's stream-safe format allows 30).
constexpr size_t kLongRun = 32;

// Tibetan vowel signs that are two marks when decomposed, though their own
// combining class is 0.
constexpr absl::string_view kTibetanPairs[][2] = {
    {"\u0F73", "\u0F71\u0F72"},
    {"\u0F75", "\u0F71\u0F74"},
    {"\u0F81", "\u0F71\u0F80"},
};

struct Mark {
  char32_t code_point = 0;
  uint8_t combining_class = 0;
};

void AppendInCanonicalOrder(std::vector<Mark>* marks, std::string* out) {
  std::stable_sort(marks->begin(), marks->end(),
                   [](const Mark& a, const Mark& b) {
                     return a.combining_class < b.combining_class;
                   });
  for (const Mark& mark : *marks) AppendUtf8(mark.code_point, out);
  marks->clear();
}

// An equivalent text in which long runs of marks are in canonical order
// already: ICU orders them by insertion, which is quadratic.
std::string WithMarksInOrder(const icu::Normalizer2& nfc,
                             absl::string_view original) {
  std::string text(original);
  for (const auto& pair : kTibetanPairs) {
    text = absl::StrReplaceAll(text, {{pair[0], pair[1]}});
  }
  std::string ordered;
  ordered.reserve(text.size());
  std::vector<Mark> marks;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    const uint8_t combining_class =
        c < 0x300 ? 0 : nfc.getCombiningClass(static_cast<UChar32>(c));
    if (combining_class > 0) {
      marks.push_back({c, combining_class});
      continue;
    }
    AppendInCanonicalOrder(&marks, &ordered);
    AppendUtf8(c, &ordered);
  }
  AppendInCanonicalOrder(&marks, &ordered);
  return ordered;
}

// Whether more than kLongRun non-ASCII characters with marks among them stand
// in a row. Cheap, and wrong only in the safe direction.
bool HasLongRunOfMarks(const icu::Normalizer2& nfc, absl::string_view text) {
  size_t run_length = 0;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, &i);
    const bool is_mark =
        c >= 0x300 && (nfc.getCombiningClass(static_cast<UChar32>(c)) > 0 ||
                       c == 0xF73 || c == 0xF75 || c == 0xF81);
    run_length = is_mark ? run_length + 1 : 0;
    if (run_length > kLongRun) return true;
  }
  return false;
}

}  // namespace

std::string ToNfc(absl::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);

  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(error);
  OUTRIDER_CHECK(U_SUCCESS(error)) << u_errorName(error);
  std::string ordered;
  if (HasLongRunOfMarks(*nfc, text)) {
    ordered = WithMarksInOrder(*nfc, text);
    text = ordered;
  }
  std::string normalized;
  icu::StringByteSink<std::string> sink(&normalized);
  nfc->normalizeUTF8(
      /*options=*/0,
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
      /*edits=*/nullptr, error);
  OUTRIDER_CHECK(U_SUCCESS(error)) << u_errorName(error);
  return normalized;
}

std::string Normalize(absl::Span<const NormalizerStep> steps,
                      absl::string_view text) {
  std::string normalized(text);
  for (const NormalizerStep& step : steps) {
    switch (step.kind) {
      case NormalizerStep::Kind::kNfc:
        normalized = ToNfc(normalized);
        break;
      case NormalizerStep::Kind::kPrepend:
        if (!normalized.empty()) normalized.insert(0, step.content);
        break;
      case NormalizerStep::Kind::kReplace:
        normalized =
            absl::StrReplaceAll(normalized, {{step.pattern, step.content}});
        break;
    }
  }
  return normalized;
}

}  // namespace outrider
