// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/token_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
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

std::string Replaced(absl::string_view text, absl::string_view pattern,
                     absl::string_view content) {
  if (pattern.empty()) return std::string(text);
  return absl::StrReplaceAll(text, {{pattern, content}});
}

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
      byte_run_ += entry->text;
      return "";
    }
    std::string text = TakeByteRun();
    if (decoder_.spec_.kind == DecoderSpec::Kind::kMetaspace) {
      text += Replaced(entry->text, decoder_.spec_.pattern,
                       is_first ? "" : decoder_.spec_.content);
    } else {
      text += entry->text;
    }
    return Stripped(std::move(text));
  }
  std::string Finish() override { return Stripped(TakeByteRun()); }

 private:
  std::string TakeByteRun() {
    std::string text;
    if (IsValidUtf8(byte_run_)) {
      text = byte_run_;
    } else {
      for (size_t i = 0; i < byte_run_.size(); ++i)
        text += kReplacementCharacter;
    }
    byte_run_.clear();
    return text;
  }

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
  std::string byte_run_;
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

std::unique_ptr<StreamingDecoder> TokenDecoder::NewStream() const {
  if (spec_.kind == DecoderSpec::Kind::kByteLevel) {
    return std::make_unique<ByteLevelStream>(*this);
  }
  return std::make_unique<PieceStream>(*this);
}

}  // namespace outrider
