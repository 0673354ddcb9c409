// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_POST_PROCESSOR_JSON_H_
#define OUTRIDER_CORE_TOKENIZER_POST_PROCESSOR_JSON_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// Sets prefix and suffix of `spec`, whose tokens must be complete, from
// TemplateProcessing, ByteLevel (which only moves offsets) or a Sequence of
// them. INVALID_ARGUMENT where the part is damaged or names a token that does
// not exist, UNIMPLEMENTED where it is not known.
absl::Status ApplyPostProcessor(const nlohmann::json& value,
                                TokenizerSpec* spec);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_POST_PROCESSOR_JSON_H_
