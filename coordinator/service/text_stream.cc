// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/text_stream.h"

#include <algorithm>
#include <utility>

namespace outrider {

TextStream::TextStream(const Tokenizer* tokenizer,
                       absl::Span<const TokenId> prompt,
                       std::vector<std::string> stop_strings)
    : decoder_(tokenizer == nullptr ? nullptr : tokenizer->NewDecoder(prompt)),
      stop_strings_(std::move(stop_strings)) {}

TextStream::Piece TextStream::Append(TokenId token) {
  if (decoder_ == nullptr) return {};
  held_back_ += decoder_->Append(token);
  return Release();
}

TextStream::Piece TextStream::Finish() {
  if (decoder_ == nullptr) return {};
  held_back_ += decoder_->Finish();
  if (std::optional<Piece> last = TakeStopped()) return *std::move(last);
  return {.text = std::exchange(held_back_, "")};
}

std::optional<TextStream::Piece> TextStream::TakeStopped() {
  size_t stop_at = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    stop_at = std::min(stop_at, held_back_.find(stop));
  }
  if (stop_at == std::string::npos) return std::nullopt;
  Piece last = {.text = held_back_.substr(0, stop_at), .stopped = true};
  held_back_.clear();
  return last;
}

TextStream::Piece TextStream::Release() {
  if (std::optional<Piece> last = TakeStopped()) return *std::move(last);
  // The longest end of the text that is the beginning of a stop string.
  size_t keep = 0;
  for (const std::string& stop : stop_strings_) {
    const size_t longest = std::min(stop.size() - 1, held_back_.size());
    for (size_t size = longest; size > keep; --size) {
      if (held_back_.compare(held_back_.size() - size, size, stop, 0, size) ==
          0) {
        keep = size;
        break;
      }
    }
  }
  Piece piece = {.text = held_back_.substr(0, held_back_.size() - keep)};
  held_back_.erase(0, piece.text.size());
  return piece;
}

}  // namespace outrider
