// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

constexpr int kNumMoved = 68;  // bytes that do not stand for themselves

constexpr bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<char32_t, 256> character = {};
  std::array<uint8_t, kNumMoved> moved = {};  // U+0100 + i stands for moved[i]
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  int num_moved = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (StandsForItself(byte)) {
      alphabet.character[byte] = byte;
    } else {
      alphabet.moved[num_moved] = static_cast<uint8_t>(byte);
      alphabet.character[byte] = 0x100 + num_moved++;
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

std::string ByteToAlphabet(uint8_t byte) {
  std::string character;
  AppendUtf8(kAlphabet.character[byte], &character);
  return character;
}

std::optional<std::string> AlphabetToBytes(absl::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const char32_t c = NextCodePoint(token, &i);
    if (c < 0x100 && StandsForItself(static_cast<int>(c))) {
      bytes += static_cast<char>(c);
    } else if (c >= 0x100 && c < 0x100 + kNumMoved) {
      bytes += static_cast<char>(kAlphabet.moved[c - 0x100]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace outrider
