// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKEN_DECODER_H_
#define OUTRIDER_CORE_TOKENIZER_TOKEN_DECODER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/token.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// What each token contributes to the text. Immutable and thread-safe.
class TokenDecoder {
 public:
  explicit TokenDecoder(const TokenizerSpec& spec);

  // One more than the highest id.
  int vocab_size() const { return static_cast<int>(entries_.size()); }

  // Together, the pieces of a stream are what the reference's decode makes of
  // the whole sequence without special tokens. In byte-level vocabularies at
  // most three bytes are held back. Where characters fall back to byte tokens,
  // a run of them is held back until it ends: by the reference's rule one
  // invalid byte turns every byte of the run into a U+FFFD of its own. Must not
  // outlive this object. Unused ids count for nothing.
  std::unique_ptr<StreamingDecoder> NewStream() const;

 private:
  class ByteLevelStream;
  class PieceStream;
  struct Entry {
    enum class Kind { kSkipped, kText, kByte };
    Kind kind = Kind::kSkipped;
    std::string text = {};  // kByteLevel: bytes; kByte: one byte; else UTF-8
  };
  Entry EntryOf(const std::string& token) const;
  // Null for what is skipped.
  const Entry* Find(TokenId id) const;

  const DecoderSpec spec_;
  std::vector<Entry> entries_;  // by id
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKEN_DECODER_H_
