// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/token_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/tokenizer/byte_alphabet.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// The byte that a token <0x..> stands for.
std::optional<uint8_t> FallbackByte(absl::string_view token) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>') {
    return std::nullopt;
  }
  const std::optional<int> high = HexDigit(token[3]);
  const std::optional<int> low = HexDigit(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<uint8_t>(*high * 16 + *low);
}

bool IsAscii(char c) { return (c & 0x80) == 0; }

std::string Replaced(absl::string_view text, absl::string_view pattern,
                     absl::string_view content) {
  if (pattern.empty()) return std::string(text);
  return absl::StrReplaceAll(text, {{pattern, content}});
}

// Byte tokens that follow each other. The reference takes them for text where
// they are valid UTF-8 as a whole, and else each for a U+FFFD.
class ByteRun {
 public:
  // The text that became certain with this byte.
  std::string Append(absl::string_view byte) {
    held_.append(byte.data(), byte.size());
    std::string text;
    assembler_.Append(byte, &text);
    // It is what is held, where that has become a character.
    is_broken_ = is_broken_ || (!text.empty() && text != held_);
    if (is_broken_) return TakeReplaced();
    if (!text.empty()) held_.clear();
    return text;
  }
  // What is still held as the run ends; the next one is then a new one.
  std::string End() {
    if (held_.empty() && !is_broken_) return "";
    std::string text = TakeReplaced();
    assembler_ = Utf8Assembler();
    is_broken_ = false;
    return text;
  }

 private:
  std::string TakeReplaced() {
    std::string text;
    for (size_t i = 0; i < held_.size(); ++i) text += kReplacementCharacter;
    held_.clear();
    return text;
  }

  Utf8Assembler assembler_;
  std::string held_;        // the start of a character
  bool is_broken_ = false;  // it has an invalid byte
};

// What follows a text that ends within a character: the text has a replacement
// for the bytes that it has of it, which is not told again where they do not
// become one.
class AfterHalfACharacter final : public StreamingDecoder {
 public:
  AfterHalfACharacter(std::unique_ptr<StreamingDecoder> stream,
                      std::string replacement)
      : stream_(std::move(stream)), replacement_(std::move(replacement)) {}

  std::string Append(TokenId token) override {
    return NotToldYet(stream_->Append(token));
  }
  std::string Finish() override { return NotToldYet(stream_->Finish()); }

 private:
  std::string NotToldYet(std::string text) {
    if (text.empty()) return text;
    // The first text that is certain begins with what became of the bytes.
    const std::string told = std::exchange(replacement_, "");
    return std::string(absl::StripPrefix(text, told));
  }

  const std::unique_ptr<StreamingDecoder> stream_;
  std::string replacement_;  // empty once it is known what became of the bytes
};

}  // namespace

class TokenDecoder::ByteLevelStream final : public StreamingDecoder {
 public:
  explicit ByteLevelStream(const TokenDecoder& decoder) : decoder_(decoder) {}

  std::string Append(TokenId token) override {
    std::string text;
    if (const Entry* entry = decoder_.Find(token)) {
      assembler_.Append(entry->text, &text);
    }
    return text;
  }
  std::string Finish() override {
    std::string text;
    assembler_.Finish(&text);
    return text;
  }
  void Skip(TokenId token) {
    const Entry* entry = decoder_.Find(token);
    if (entry == nullptr) return;
    if (!entry->text.empty() && IsAscii(entry->text.back())) {
      assembler_ = Utf8Assembler();  // no character goes on after that
    } else {
      Append(token);
    }
  }

 private:
  const TokenDecoder& decoder_;
  Utf8Assembler assembler_;
};

class TokenDecoder::PieceStream final : public StreamingDecoder {
 public:
  explicit PieceStream(const TokenDecoder& decoder) : decoder_(decoder) {}

  std::string Append(TokenId token) override {
    const Entry* entry = decoder_.Find(token);
    if (entry == nullptr) return "";
    const bool is_first = !any_token_;
    any_token_ = true;
    if (entry->kind == Entry::Kind::kByte) {
      return Stripped(byte_run_.Append(entry->text));
    }
    std::string text = byte_run_.End();
    if (decoder_.spec_.kind == DecoderSpec::Kind::kMetaspace) {
      text += Replaced(entry->text, decoder_.spec_.pattern,
                       is_first ? "" : decoder_.spec_.content);
    } else {
      text += entry->text;
    }
    return Stripped(std::move(text));
  }
  std::string Finish() override { return Stripped(byte_run_.End()); }
  void Skip(TokenId token) {
    const Entry* entry = decoder_.Find(token);
    if (entry == nullptr) return;
    const bool is_at_start =
        !any_token_ || num_stripped_ < decoder_.spec_.max_stripped;
    if (is_at_start || entry->kind == Entry::Kind::kByte) {
      Append(token);
    } else {
      byte_run_.End();
    }
  }

 private:
  std::string Stripped(std::string text) {
    const std::string& strip = decoder_.spec_.strip;
    size_t begin = 0;
    while (num_stripped_ < decoder_.spec_.max_stripped &&
           absl::StartsWith(absl::string_view(text).substr(begin), strip)) {
      begin += strip.size();
      ++num_stripped_;
    }
    // What follows anything else is not at the start any more.
    if (begin < text.size()) num_stripped_ = decoder_.spec_.max_stripped;
    return text.substr(begin);
  }

  const TokenDecoder& decoder_;
  bool any_token_ = false;
  ByteRun byte_run_;
  int num_stripped_ = 0;
};

TokenDecoder::TokenDecoder(const TokenizerSpec& spec) : spec_(spec.decoder) {
  entries_.resize(spec.bpe.tokens.size());
  for (size_t id = 0; id < spec.bpe.tokens.size(); ++id) {
    if (spec.bpe.tokens[id]) entries_[id] = EntryOf(*spec.bpe.tokens[id]);
  }
  for (const AddedToken& token : spec.added_tokens) {
    const size_t id = static_cast<size_t>(token.id);
    entries_.resize(std::max(entries_.size(), id + 1));
    entries_[id] = token.special ? Entry() : EntryOf(token.content);
  }
}

TokenDecoder::Entry TokenDecoder::EntryOf(const std::string& token) const {
  Entry entry = {.kind = Entry::Kind::kText, .text = token};
  switch (spec_.kind) {
    case DecoderSpec::Kind::kByteLevel:
      entry.text = AlphabetToBytes(token).value_or(token);
      break;
    case DecoderSpec::Kind::kPieces:
      entry.text = Replaced(token, spec_.pattern, spec_.content);
      if (!spec_.byte_fallback) break;
      if (const std::optional<uint8_t> byte = FallbackByte(entry.text)) {
        entry = {.kind = Entry::Kind::kByte,
                 .text = std::string(1, static_cast<char>(*byte))};
      }
      break;
    case DecoderSpec::Kind::kMetaspace:
      break;  // depends on the token's place
  }
  return entry;
}

const TokenDecoder::Entry* TokenDecoder::Find(TokenId id) const {
  if (id < 0 || id >= vocab_size()) return nullptr;
  const Entry& entry = entries_[id];
  return entry.kind == Entry::Kind::kSkipped ? nullptr : &entry;
}

std::unique_ptr<StreamingDecoder> TokenDecoder::NewStream(
    absl::Span<const TokenId> before) const {
  if (spec_.kind == DecoderSpec::Kind::kByteLevel) {
    return NewStream<ByteLevelStream>(before);
  }
  return NewStream<PieceStream>(before);
}

template <typename Stream>
std::unique_ptr<StreamingDecoder> TokenDecoder::NewStream(
    absl::Span<const TokenId> before) const {
  auto stream = std::make_unique<Stream>(*this);
  for (const TokenId id : before) stream->Skip(id);
  std::string replacement = Stream(*stream).Finish();
  if (replacement.empty()) return stream;
  return std::make_unique<AfterHalfACharacter>(std::move(stream),
                                               std::move(replacement));
}

}  // namespace outrider
