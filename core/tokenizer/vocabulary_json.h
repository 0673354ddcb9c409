// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_VOCABULARY_JSON_H_
#define OUTRIDER_CORE_TOKENIZER_VOCABULARY_JSON_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/json/json_fields.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// This is above every vocabulary there is, and small enough for a table by id.
constexpr int kMaxVocabularySize = 1 << 22;

// The "model" of a tokenizer.json. Ids may have holes, but not occur twice.
absl::StatusOr<BpeSpec> ParseBpe(const JsonFields& model);

// The "added_tokens". The reference ignores the ids that the file gives them
// and counts on from the vocabulary; here both must agree.
absl::StatusOr<std::vector<AddedToken>> ParseAddedTokens(
    const nlohmann::json& value, const BpeSpec& bpe);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_VOCABULARY_JSON_H_
