// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKENIZER_SPEC_H_
#define OUTRIDER_CORE_TOKENIZER_TOKENIZER_SPEC_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/token.h"
#include "core/tokenizer/bpe_merger.h"
#include "core/tokenizer/normalizer.h"
#include "core/tokenizer/pretokenizer.h"

namespace outrider {

// A token that is found in the text itself, before any merging.
struct AddedToken {
  TokenId id = 0;
  std::string content = {};
  bool special = false;      // left out when decoding
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // searched for after normalisation, not before
};

// The vocabulary and how symbols become tokens.
struct BpeSpec {
  // The tokens by id, valid UTF-8 as spelled in the file; none where an id is
  // unused.
  std::vector<std::optional<std::string>> tokens = {};
  std::vector<BpeMerge> merges = {};  // by rank
  std::optional<TokenId> unknown = {};
  bool fuse_unknown = false;   // one token for neighbouring unknown symbols
  bool byte_fallback = false;  // an unknown character becomes <0x..> tokens
  bool ignore_merges = false;  // a piece that is a token is not merged
};

// How token texts become text again.
struct DecoderSpec {
  enum class Kind {
    kByteLevel,  // tokens spell bytes
    kPieces,     // tokens are text in which `pattern` stands for `content`
    kMetaspace,  // the same, but in the first token it stands for nothing
  };
  Kind kind = Kind::kByteLevel;
  std::string pattern = {};  // empty: nothing is replaced
  std::string content = {};
  bool byte_fallback = false;  // tokens <0x..> are bytes
  std::string strip = {};      // a character, up to
  int max_stripped = 0;        // so many of which go from the start of the text
};

// What a tokenizer.json says, checked: ids are in range, merges are between
// tokens that exist, strings are valid UTF-8. Everything the tokenizer does
// follows from this value, and the fingerprint is a hash of it.
struct TokenizerSpec {
  BpeSpec bpe = {};
  // No two have the same content or id; where a content is in the vocabulary,
  // the id is the same.
  std::vector<AddedToken> added_tokens = {};
  std::vector<NormalizerStep> normalizer = {};
  PretokenizerSpec pretokenizer = {};
  std::vector<TokenId> prefix = {};  // before every encoded text, such as BOS
  std::vector<TokenId> suffix = {};
  DecoderSpec decoder = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKENIZER_SPEC_H_
