// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/json/json_fields.h"
#include "core/json/strict_json.h"
#include "core/tokenizer/post_processor_json.h"
#include "core/tokenizer/text_steps_json.h"
#include "core/tokenizer/vocabulary_json.h"

namespace outrider {
namespace {

constexpr int kMaxDepth = 64;

// Both change what encoding gives; a model directory has no business with them.
absl::Status RefuseTruncationAndPadding(const JsonFields& file) {
  for (const char* name : {"truncation", "padding"}) {
    if (file.Find(name) != nullptr) {
      return file.Unsupported(name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizerSpec> ParseSpec(const nlohmann::json& value) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields file,
                            JsonFields::Of(value, "the top level"));
  OUTRIDER_RETURN_IF_ERROR(file.AllAmong(
      {"version", "truncation", "padding", "added_tokens", "normalizer",
       "pre_tokenizer", "post_processor", "decoder", "model"}));
  OUTRIDER_RETURN_IF_ERROR(RefuseTruncationAndPadding(file));

  TokenizerSpec spec;
  OUTRIDER_ASSIGN_OR_RETURN(const nlohmann::json* model_value,
                            file.Any("model"));
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields model,
                            JsonFields::Of(*model_value, "model"));
  OUTRIDER_ASSIGN_OR_RETURN(spec.bpe, ParseBpe(model));
  if (const nlohmann::json* tokens = file.Find("added_tokens")) {
    OUTRIDER_ASSIGN_OR_RETURN(spec.added_tokens,
                              ParseAddedTokens(*tokens, spec.bpe));
  }
  if (const nlohmann::json* normalizer = file.Find("normalizer")) {
    OUTRIDER_RETURN_IF_ERROR(AppendNormalizer(*normalizer, &spec.normalizer));
  }
  if (const nlohmann::json* pretokenizer = file.Find("pre_tokenizer")) {
    OUTRIDER_ASSIGN_OR_RETURN(spec.pretokenizer,
                              ParsePretokenizer(*pretokenizer));
  }
  if (const nlohmann::json* processor = file.Find("post_processor")) {
    OUTRIDER_RETURN_IF_ERROR(ApplyPostProcessor(*processor, &spec));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const nlohmann::json* decoder, file.Any("decoder"));
  OUTRIDER_ASSIGN_OR_RETURN(spec.decoder, ParseDecoder(*decoder));

  if (spec.bpe.byte_fallback &&
      spec.pretokenizer.kind == PretokenizerSpec::Kind::kByteLevel) {
    return file.Unsupported(
        "model.byte_fallback together with a ByteLevel pre_tokenizer");
  }
  return spec;
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseTokenizerJson(absl::string_view text,
                                                 const std::string& what) {
  OUTRIDER_ASSIGN_OR_RETURN(
      const nlohmann::json value,
      ParseStrictJson(
          text, what,
          {.max_depth = kMaxDepth, .max_bytes = kMaxTokenizerJsonBytes}));
  absl::StatusOr<TokenizerSpec> spec = ParseSpec(value);
  if (spec.ok()) return spec;
  return absl::Status(spec.status().code(),
                      absl::StrCat(what, ": ", spec.status().message()));
}

}  // namespace outrider
