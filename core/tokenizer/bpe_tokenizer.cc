// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/tokenizer/fingerprint.h"
#include "core/tokenizer/normalizer.h"
#include "core/tokenizer/pretokenizer.h"
#include "core/tokenizer/token_bytes.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

AddedTokenFinder FinderOf(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : spec.added_tokens) {
    if (token.normalized == normalized) tokens.push_back(token);
  }
  // Special ones first: of two that look the same the first is found.
  std::stable_partition(tokens.begin(), tokens.end(),
                        [](const AddedToken& token) { return token.special; });
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) {
    patterns.push_back(normalized ? Normalize(spec.normalizer, token.content)
                                  : token.content);
  }
  return AddedTokenFinder(std::move(tokens), patterns);
}

BpeModel::Symbols SymbolsOf(const PretokenizerSpec& spec) {
  return spec.kind == PretokenizerSpec::Kind::kByteLevel
             ? BpeModel::Symbols::kBytes
             : BpeModel::Symbols::kCharacters;
}

}  // namespace

BpeTokenizer::BpeTokenizer(const TokenizerSpec& spec,
                           std::optional<TokenId> eos_id)
    : normalizer_(spec.normalizer),
      pretokenizer_(spec.pretokenizer),
      prefix_(spec.prefix),
      suffix_(spec.suffix),
      added_before_normalizing_(FinderOf(spec, /*normalized=*/false)),
      added_after_normalizing_(FinderOf(spec, /*normalized=*/true)),
      model_(spec.bpe, SymbolsOf(spec.pretokenizer)),
      decoder_(spec),
      eos_id_(eos_id),
      fingerprint_(FingerprintOf(spec)),
      max_bytes_per_token_(MaxBytesPerToken(spec)) {}

std::vector<TokenId> BpeTokenizer::Encode(absl::string_view text) const {
  const std::string valid = LossyUtf8(text);
  TokenSeq ids = prefix_;
  for (const TextSegment& segment : added_before_normalizing_.Split(valid)) {
    if (segment.token) {
      ids.push_back(*segment.token);
    } else {
      EncodeSegment(segment.text,
                    /*is_first=*/segment.text.data() == valid.data(), &ids);
    }
  }
  ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void BpeTokenizer::EncodeSegment(absl::string_view text, bool is_first,
                                 TokenSeq* out) const {
  const std::string normalized = Normalize(normalizer_, text);
  for (const TextSegment& segment :
       added_after_normalizing_.Split(normalized)) {
    if (segment.token) {
      out->push_back(*segment.token);
      continue;
    }
    ForEachPiece(pretokenizer_, segment.text,
                 is_first && segment.text.data() == normalized.data(),
                 [&](absl::string_view piece) { model_.Encode(piece, out); });
  }
}

std::unique_ptr<StreamingDecoder> BpeTokenizer::NewDecoder(
    absl::Span<const TokenId> before) const {
  return decoder_.NewStream(before);
}

}  // namespace outrider
