// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TOKENIZER_JSON_H_
#define OUTRIDER_CORE_TOKENIZER_TOKENIZER_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// Longer files are refused.
constexpr size_t kMaxTokenizerJsonBytes = size_t{32} << 20;

// The content of a tokenizer.json; `what` starts every message.
// INVALID_ARGUMENT where it is damaged, UNIMPLEMENTED with the name of the part
// where it needs something unknown: nothing that could change an id or a text
// is skipped over.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(
    absl::string_view text, const std::string& what = "tokenizer.json");

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TOKENIZER_JSON_H_
