// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/sha256.h"

namespace outrider {
namespace {

// Hashes fields so that no two sequences of them look alike: numbers have 8
// bytes, little-endian, strings and lists their length in front.
class FieldHash {
 public:
  void Number(int64_t value) {
    std::array<char, 8> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
    }
    hash_.Update(absl::string_view(bytes.data(), bytes.size()));
  }
  template <typename Enum>
  void Choice(Enum value) {
    Number(static_cast<int64_t>(value));
  }
  void String(absl::string_view value) {
    Number(static_cast<int64_t>(value.size()));
    hash_.Update(value);
  }
  void Ids(const std::vector<TokenId>& ids) {
    Number(static_cast<int64_t>(ids.size()));
    for (const TokenId id : ids) Number(id);
  }
  std::string HexDigest() { return hash_.HexDigest(); }

 private:
  Sha256 hash_;
};

void Add(const BpeSpec& bpe, FieldHash* hash) {
  hash->Number(static_cast<int64_t>(bpe.tokens.size()));
  for (const auto& token : bpe.tokens) {
    hash->Number(token.has_value());
    if (token) hash->String(*token);
  }
  hash->Number(static_cast<int64_t>(bpe.merges.size()));
  for (const BpeMerge& merge : bpe.merges) {
    hash->Number(merge.left);
    hash->Number(merge.right);
    hash->Number(merge.merged);
  }
  hash->Number(bpe.unknown.value_or(-1));
  hash->Number(bpe.fuse_unknown);
  hash->Number(bpe.byte_fallback);
  hash->Number(bpe.ignore_merges);
}

void Add(std::vector<AddedToken> tokens, FieldHash* hash) {
  std::sort(
      tokens.begin(), tokens.end(),
      [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  hash->Number(static_cast<int64_t>(tokens.size()));
  for (const AddedToken& token : tokens) {
    hash->Number(token.id);
    hash->String(token.content);
    for (const bool flag : {token.special, token.single_word, token.lstrip,
                            token.rstrip, token.normalized}) {
      hash->Number(flag);
    }
  }
}

void Add(const std::vector<NormalizerStep>& steps, FieldHash* hash) {
  hash->Number(static_cast<int64_t>(steps.size()));
  for (const NormalizerStep& step : steps) {
    hash->Choice(step.kind);
    hash->String(step.pattern);
    hash->String(step.content);
  }
}

void Add(const PretokenizerSpec& spec, FieldHash* hash) {
  // Those of files without Digits are what older releases make of them. Where
  // there is one its name's length stands in the place of the kind, and is
  // none.
  if (spec.digits != Digits::kWithText) {
    hash->String("Digits");
    hash->Choice(spec.digits);
  }
  hash->Choice(spec.kind);
  hash->Choice(spec.pattern);
  hash->Choice(spec.prepend);
  hash->String(spec.replacement);
  hash->Number(spec.cut_at_replacement);
}

void Add(const DecoderSpec& spec, FieldHash* hash) {
  hash->Choice(spec.kind);
  hash->String(spec.pattern);
  hash->String(spec.content);
  hash->Number(spec.byte_fallback);
  hash->String(spec.strip);
  hash->Number(spec.max_stripped);
}

}  // namespace

std::string FingerprintOf(const TokenizerSpec& spec) {
  FieldHash hash;
  hash.String("outrider tokenizer 1");  // raise when the fields change
  Add(spec.bpe, &hash);
  Add(spec.added_tokens, &hash);
  Add(spec.normalizer, &hash);
  Add(spec.pretokenizer, &hash);
  hash.Ids(spec.prefix);
  hash.Ids(spec.suffix);
  Add(spec.decoder, &hash);
  return hash.HexDigest();
}

}  // namespace outrider
