// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKENIZER_H_
#define OUTRIDER_CORE_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider {

// Turns token ids into text as they arrive, never half a UTF-8 character:
// bytes that may still become one, three at most, are held back until they do.
// What cannot become valid UTF-8 comes out as U+FFFD. Where characters fall
// back to byte tokens, one invalid byte turns all of its run into U+FFFD in the
// reference, each byte for itself; here only what is still held back and what
// follows, as whole characters before it have been told. Thread-compatible.
class StreamingDecoder {
 public:
  virtual ~StreamingDecoder() = default;
  // The text that became certain with this token; possibly empty.
  virtual std::string Append(TokenId token) = 0;
  // What is still held back at the end of the stream.
  virtual std::string Finish() = 0;
};

// Text to token ids and back, as the model directory's tokenizer.json says.
// Immutable after loading and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Adds the special tokens that tokenizer.json adds (such as BOS). Any bytes
  // are accepted; invalid UTF-8 is replaced by U+FFFD as the reference does.
  // As there, a special token spelled out in the text becomes that token.
  virtual std::vector<TokenId> Encode(absl::string_view text) const = 0;

  // The most bytes of a text that one token can stand for. Nothing where there
  // is no such bound, as text of any length may become one token, or none.
  virtual std::optional<size_t> max_bytes_per_token() const {
    return std::nullopt;
  }

  // The text follows that of `before`, such as a prompt: a blank that
  // tokenizers leave out at the start of a text is left out at that of the
  // whole, and a character whose first bytes are the last of `before` comes
  // with the rest of its bytes; where these do not come, the U+FFFD for the
  // first is in the text of `before` alone. Special tokens and unused ids are
  // left out of the text. The decoder must not outlive the tokenizer.
  virtual std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> before) const = 0;
  // The whole text of the ids at once; ids must be in [0, vocab_size).
  std::string Decode(absl::Span<const TokenId> ids) const {
    const std::unique_ptr<StreamingDecoder> decoder = NewDecoder({});
    std::string text;
    for (const TokenId id : ids) text += decoder->Append(id);
    return text + decoder->Finish();
  }

  // One more than the highest id; a model's head may be padded beyond it.
  virtual int vocab_size() const = 0;

  // The token that ends a text, by the directory's tokenizer_config.json:
  // config files of the model may name others. Nothing where it names none.
  virtual std::optional<TokenId> eos_id() const { return std::nullopt; }

  // Hex sha256 over the content (id -> bytes, merges, special ids), not over
  // the file: equal tokenizers in different files have equal fingerprints.
  virtual const std::string& fingerprint() const = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKENIZER_H_
