// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_TEXT_STREAM_H_
#define OUTRIDER_COORDINATOR_SERVICE_TEXT_STREAM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/tokenizer/tokenizer.h"

namespace outrider {

// Tokens to text as they commit: whole characters only, and nothing that may
// yet turn out to be part of a stop string. Thread-compatible.
class TextStream {
 public:
  // `prompt`: what the text follows. `tokenizer` may be null: then there is no
  // text, and no stop string can be found.
  TextStream(const Tokenizer* tokenizer, absl::Span<const TokenId> prompt,
             std::vector<std::string> stop_strings);

  struct Piece {
    std::string text = {};
    bool stopped = false;  // a stop string is complete; text ends before it
  };
  Piece Append(TokenId token);
  // What was held back and belongs to the output after all. Half a character
  // at the end, which is a U+FFFD, may still complete a stop string.
  Piece Finish();

 private:
  // The text up to the first stop string, where held_back_ has one.
  std::optional<Piece> TakeStopped();
  // Moves out of held_back_ what no stop string can begin in any more.
  Piece Release();

  const std::unique_ptr<StreamingDecoder> decoder_;
  const std::vector<std::string> stop_strings_;
  std::string held_back_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_TEXT_STREAM_H_
