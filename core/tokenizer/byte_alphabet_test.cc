// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace outrider {
namespace {

TEST(ByteAlphabetTest, EveryByteHasACharacterOfItsOwn) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = ByteToAlphabet(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(character).second) << byte;
    EXPECT_EQ(AlphabetToBytes(character),
              std::string(1, static_cast<char>(byte)));
  }
}

TEST(ByteAlphabetTest, PrintableBytesStandForThemselvesAndOthersAreMoved) {
  EXPECT_EQ(ByteToAlphabet('a'), "a");
  EXPECT_EQ(ByteToAlphabet(0xE9), "é");
  EXPECT_EQ(ByteToAlphabet(' '), "Ġ");
  EXPECT_EQ(ByteToAlphabet('\n'), "Ċ");
  EXPECT_EQ(ByteToAlphabet(0xAD), "\u0143");
}

TEST(ByteAlphabetTest, ATokenOutsideTheAlphabetSpellsNoBytes) {
  EXPECT_EQ(AlphabetToBytes("a b"), std::nullopt);
  EXPECT_EQ(AlphabetToBytes("▁a"), std::nullopt);
  EXPECT_EQ(AlphabetToBytes("\u0144"), std::nullopt);
  EXPECT_EQ(AlphabetToBytes(""), "");
}

}  // namespace
}  // namespace outrider
