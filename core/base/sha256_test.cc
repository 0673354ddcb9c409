// SPDX-License-Identifier: Apache-2.0
#include "core/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"

namespace outrider {
namespace {

std::string HashOf(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.HexDigest();
}

// The vectors are NIST's examples for FIPS 180-4.
TEST(Sha256Test, AgreesWithThePublishedVectors) {
  EXPECT_EQ(HashOf(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HashOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, DoesNotDependOnHowTheBytesAreCut) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(hash.HexDigest(), HashOf("abc"));
}

TEST(Sha256Test, SeesZeroBytes) {
  EXPECT_NE(HashOf(absl::string_view("a\0", 2)), HashOf("a"));
}

}  // namespace
}  // namespace outrider
