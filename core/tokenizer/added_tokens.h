// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_ADDED_TOKENS_H_
#define OUTRIDER_CORE_TOKENIZER_ADDED_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// Part of a text: an added token, or the text between two of them.
struct TextSegment {
  std::optional<TokenId> token = {};
  absl::string_view text = {};
};

// Finds added tokens in a text: leftmost first, and the longest of those that
// start there; what one took is not searched again. Immutable and thread-safe.
class AddedTokenFinder {
 public:
  // `patterns[i]` is what `tokens[i]` looks like in the text. Empty patterns
  // never match.
  AddedTokenFinder(std::vector<AddedToken> tokens,
                   absl::Span<const std::string> patterns);

  // The segments of `text`, which must be valid UTF-8; they point into it.
  // Segments without text and without token are left out.
  std::vector<TextSegment> Split(absl::string_view text) const;

 private:
  struct Match {
    size_t index = 0;  // in tokens_
    size_t end = 0;
  };
  void Insert(absl::string_view pattern, size_t token_index);
  // The longest pattern that starts at `begin`.
  std::optional<Match> LongestAt(absl::string_view text, size_t begin) const;

  std::vector<AddedToken> tokens_;
  // A trie: the token that ends at each node; node 0 is the root.
  std::vector<std::optional<size_t>> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> children_;  // by (node << 8 | byte)
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_ADDED_TOKENS_H_
