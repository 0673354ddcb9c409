// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/bpe_model.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "core/tokenizer/byte_alphabet.h"
#include "core/tokenizer/utf8.h"

namespace outrider {

BpeModel::BpeModel(const BpeSpec& spec, Symbols symbols)
    : symbols_(symbols),
      unknown_(spec.unknown),
      fuse_unknown_(spec.fuse_unknown),
      ignore_merges_(spec.ignore_merges),
      merger_(spec.merges) {
  ids_.reserve(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!spec.tokens[id]) continue;
    // A token outside the byte alphabet is never found in text.
    const std::optional<std::string> text =
        symbols == Symbols::kBytes ? AlphabetToBytes(*spec.tokens[id])
                                   : spec.tokens[id];
    if (text) ids_.emplace(*text, static_cast<TokenId>(id));
  }
  if (!spec.byte_fallback) return;
  for (size_t byte = 0; byte < byte_fallback_.size(); ++byte) {
    byte_fallback_[byte] = Find(absl::StrFormat("<0x%02X>", byte));
  }
}

void BpeModel::Encode(absl::string_view piece, TokenSeq* out) const {
  if (ignore_merges_) {
    if (const std::optional<TokenId> id = Find(piece)) {
      out->push_back(*id);
      return;
    }
  }
  TokenSeq symbols = SymbolsOf(piece);
  merger_.Merge(&symbols);
  out->insert(out->end(), symbols.begin(), symbols.end());
}

std::optional<TokenId> BpeModel::Find(absl::string_view text) const {
  const auto it = ids_.find(text);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

TokenSeq BpeModel::SymbolsOf(absl::string_view piece) const {
  TokenSeq symbols;
  bool unknown_pending = false;
  for (size_t end = 0; end < piece.size();) {
    const size_t begin = end;
    if (symbols_ == Symbols::kBytes) {
      ++end;
    } else {
      NextCodePoint(piece, &end);
    }
    const absl::string_view symbol = piece.substr(begin, end - begin);
    if (const std::optional<TokenId> id = Find(symbol)) {
      if (unknown_pending) symbols.push_back(*unknown_);
      unknown_pending = false;
      symbols.push_back(*id);
      continue;
    }
    // Like the reference, a pending unknown token comes after these. Both occur
    // only in vocabularies with some of the byte tokens.
    if (AppendFallback(symbol, &symbols)) continue;
    if (!unknown_) continue;  // left out, as in the reference
    if (unknown_pending && !fuse_unknown_) symbols.push_back(*unknown_);
    unknown_pending = true;
  }
  if (unknown_pending) symbols.push_back(*unknown_);
  return symbols;
}

// All bytes of the character, or none.
bool BpeModel::AppendFallback(absl::string_view character,
                              TokenSeq* symbols) const {
  for (const char c : character) {
    if (!byte_fallback_[static_cast<uint8_t>(c)]) return false;
  }
  for (const char c : character) {
    symbols->push_back(*byte_fallback_[static_cast<uint8_t>(c)]);
  }
  return true;
}

}  // namespace outrider
