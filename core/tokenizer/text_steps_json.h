// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_TEXT_STEPS_JSON_H_
#define OUTRIDER_CORE_TOKENIZER_TEXT_STEPS_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// The parts of a tokenizer.json that work on text. Each is INVALID_ARGUMENT
// where it is damaged and UNIMPLEMENTED, by name, where it is not known.

// Appends NFC, Prepend, Replace or a Sequence of them.
absl::Status AppendNormalizer(const nlohmann::json& value,
                              std::vector<NormalizerStep>* steps);

// ByteLevel, a known Split or Digits followed by ByteLevel, or Metaspace.
absl::StatusOr<PretokenizerSpec> ParsePretokenizer(const nlohmann::json& value);

// ByteLevel, Metaspace, or a Sequence of Replace, ByteFallback, Fuse and Strip
// in this order, of which some may be absent.
absl::StatusOr<DecoderSpec> ParseDecoder(const nlohmann::json& value);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_TEXT_STEPS_JSON_H_
