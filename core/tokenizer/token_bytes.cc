// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/token_bytes.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "core/tokenizer/byte_alphabet.h"

namespace outrider {
namespace {

// Normalisation form C makes a text at most 3.5 times shorter: U+1FBE U+0308
// U+0301, of 7 bytes, is U+0390, of 2.
constexpr size_t kNfcFactor = 4;
constexpr size_t kMaxUtf8Bytes = 4;  // of a character without a token
constexpr int kNumBytes = 256;
constexpr size_t kMostBytes = size_t{1} << 30;  // more bound nothing

size_t CeilRatio(size_t a, size_t b) { return (a + b - 1) / b; }

// How many times shorter a step makes a text; nothing: to any length.
std::optional<size_t> ShrinkFactor(const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return kNfcFactor;
    case NormalizerStep::Kind::kPrepend:
      return 1;
    case NormalizerStep::Kind::kReplace:
      if (step.content.empty()) return std::nullopt;
      return std::max<size_t>(
          1, CeilRatio(step.pattern.size(), step.content.size()));
  }
  return std::nullopt;
}

// Whether each symbol that has no token becomes one all the same.
bool LeavesNothingOut(const TokenizerSpec& spec) {
  const BpeSpec& bpe = spec.bpe;
  if (bpe.unknown.has_value() && !bpe.fuse_unknown) return true;
  absl::flat_hash_set<std::string> found;
  const bool is_byte_level =
      spec.pretokenizer.kind == PretokenizerSpec::Kind::kByteLevel;
  if (!is_byte_level && !bpe.byte_fallback) return false;
  for (const std::optional<std::string>& token : bpe.tokens) {
    if (!token.has_value()) continue;
    const auto bytes = is_byte_level ? AlphabetToBytes(*token) : token;
    if (bytes.has_value()) found.insert(*bytes);
  }
  for (int byte = 0; byte < kNumBytes; ++byte) {
    const std::string symbol = is_byte_level
                                   ? std::string(1, static_cast<char>(byte))
                                   : absl::StrFormat("<0x%02X>", byte);
    if (!found.contains(symbol)) return false;
  }
  return true;
}

}  // namespace

std::optional<size_t> MaxBytesPerToken(const TokenizerSpec& spec) {
  if (!LeavesNothingOut(spec)) return std::nullopt;
  const PretokenizerSpec& pieces = spec.pretokenizer;
  if (pieces.kind == PretokenizerSpec::Kind::kMetaspace &&
      pieces.replacement.empty()) {
    return std::nullopt;  // spaces are left out
  }
  size_t longest = kMaxUtf8Bytes;
  for (const std::optional<std::string>& token : spec.bpe.tokens) {
    // The byte alphabet spells no byte with less than one.
    if (token.has_value()) longest = std::max(longest, token->size());
  }
  for (const AddedToken& token : spec.added_tokens) {
    if (token.lstrip || token.rstrip) return std::nullopt;  // take white space
    longest = std::max(longest, token.content.size());
  }
  for (const NormalizerStep& step : spec.normalizer) {
    const std::optional<size_t> factor = ShrinkFactor(step);
    if (!factor.has_value() || longest > kMostBytes / *factor) {
      return std::nullopt;
    }
    longest *= *factor;
  }
  return longest;
}

}  // namespace outrider
