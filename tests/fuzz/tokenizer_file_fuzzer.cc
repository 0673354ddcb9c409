// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json of anybody's, byte-level BPE or SentencePiece: refused with
// words, or a tokenizer that works.
#include <string>
#include <vector>

#include "core/tokenizer/bpe_tokenizer.h"
#include "core/tokenizer/tokenizer_json.h"
#include "core/tokenizer/utf8.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

constexpr char kText[] = "Hello  <s>w\xC3\xB6rld\n 123 it's\xFF <|a|>";

void Try(absl::string_view file) {
  const auto spec = ParseTokenizerJson(file);
  if (!spec.ok()) {
    CheckRefusal(spec.status());
    return;
  }
  const BpeTokenizer tokenizer(*spec);
  const std::vector<TokenId> ids = tokenizer.Encode(kText);
  for (const TokenId id : ids) {
    OUTRIDER_CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
  OUTRIDER_CHECK(IsValidUtf8(tokenizer.Decode(ids)));
  OUTRIDER_CHECK(IsValidUtf8(tokenizer.Decode({-1, 0, 1, 2, 1 << 30})));
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::testing::Try(outrider::testing::AsText(data, size));
  return 0;
}
