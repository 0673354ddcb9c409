// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKEN_DECODER_H_
#define OUTRIDER_CORE_TOKENIZER_TOKEN_DECODER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
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

  // See Tokenizer::NewDecoder. Together, the pieces of a stream are what the
  // reference's decode makes of the whole sequence without special tokens, but
  // for runs of byte tokens that are not valid UTF-8 (StreamingDecoder). Must
  // not outlive this object.
  std::unique_ptr<StreamingDecoder> NewStream(
      absl::Span<const TokenId> before) const;

 private:
  // Their Skip does what Append does, without the text: that of a long prompt
  // takes tens of milliseconds to make.
  class ByteLevelStream;
  class PieceStream;
  template <typename Stream>
  std::unique_ptr<StreamingDecoder> NewStream(
      absl::Span<const TokenId> before) const;
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
