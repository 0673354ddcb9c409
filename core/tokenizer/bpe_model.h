// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_BPE_MODEL_H_
#define OUTRIDER_CORE_TOKENIZER_BPE_MODEL_H_

#include <array>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/token.h"
#include "core/tokenizer/bpe_merger.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// One piece of text to tokens: first to symbols, then merged. Immutable and
// thread-safe.
class BpeModel {
 public:
  enum class Symbols { kCharacters, kBytes };
  BpeModel(const BpeSpec& spec, Symbols symbols);

  // Appends the tokens of `piece`, valid UTF-8, to `out`.
  void Encode(absl::string_view piece, TokenSeq* out) const;

 private:
  using ByteTable = std::array<std::optional<TokenId>, 256>;

  std::optional<TokenId> Find(absl::string_view text) const;
  bool AppendFallback(absl::string_view character, TokenSeq* symbols) const;
  TokenSeq SymbolsOf(absl::string_view piece) const;

  const Symbols symbols_;
  const std::optional<TokenId> unknown_;
  const bool fuse_unknown_;
  const bool ignore_merges_;
  absl::flat_hash_map<std::string, TokenId> ids_;  // by the text they stand for
  ByteTable byte_fallback_;  // the tokens <0x00> to <0xFF>, if they are used
  BpeMerger merger_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_BPE_MODEL_H_
