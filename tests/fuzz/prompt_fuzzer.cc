// SPDX-License-Identifier: Apache-2.0
// A prompt of anybody's through each kind of tokenizer: the first byte says
// which, the others are the text.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/testing/golden_files.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/tokenizer/utf8.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

struct Kind {
  std::unique_ptr<Tokenizer> tokenizer = nullptr;
  // The text comes back byte for byte, where it is UTF-8 without special
  // tokens.
  bool keeps_text = false;
};

std::vector<Kind> LoadKinds() {
  std::vector<Kind> kinds;
  for (const std::string& name : GoldenKinds()) {
    auto tokenizer = LoadTokenizer(GoldenDirectory(name));
    OUTRIDER_CHECK(tokenizer.ok()) << tokenizer.status();
    kinds.push_back({.tokenizer = *std::move(tokenizer),
                     .keeps_text = name == "gpt2" || name == "llama3"});
  }
  return kinds;
}

void Try(const Kind& kind, absl::string_view text) {
  const Tokenizer& tokenizer = *kind.tokenizer;
  const std::vector<TokenId> ids = tokenizer.Encode(text);
  for (const TokenId id : ids) {
    OUTRIDER_CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
  const auto most = tokenizer.max_bytes_per_token();
  OUTRIDER_CHECK(!most.has_value() || ids.size() * *most >= text.size());
  const std::string back = tokenizer.Decode(ids);
  OUTRIDER_CHECK(IsValidUtf8(back));
  const bool is_plain =
      IsValidUtf8(text) && text.find('<') == absl::string_view::npos;
  OUTRIDER_CHECK(!kind.keeps_text || !is_plain || back == text);
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  static const std::vector<Kind> kinds = LoadKinds();
  if (size == 0) return 0;
  Try(kinds[data[0] % kinds.size()], AsText(data + 1, size - 1));
  return 0;
}
