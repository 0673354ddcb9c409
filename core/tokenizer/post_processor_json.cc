// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/post_processor_json.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/json/json_fields.h"
#include "core/tokenizer/vocabulary_json.h"

namespace outrider {
namespace {

using nlohmann::json;

constexpr size_t kMaxTemplateTokens = 64;

bool Exists(const TokenizerSpec& spec, TokenId id) {
  const auto& tokens = spec.bpe.tokens;
  if (static_cast<size_t>(id) < tokens.size() && tokens[id]) return true;
  return std::any_of(spec.added_tokens.begin(), spec.added_tokens.end(),
                     [&](const AddedToken& token) { return token.id == id; });
}

// The ids of the special token that the template calls `name`.
absl::StatusOr<std::vector<TokenId>> SpecialIds(const JsonFields& processor,
                                                const std::string& name,
                                                const TokenizerSpec& spec) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields special_tokens,
                            processor.Object("special_tokens"));
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields token,
                            special_tokens.Object(name));
  OUTRIDER_RETURN_IF_ERROR(token.AllAmong({"id", "ids", "tokens"}));
  OUTRIDER_ASSIGN_OR_RETURN(const json* values, token.Array("ids"));
  std::vector<TokenId> ids;
  for (const json& value : *values) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const TokenId id,
        JsonIndex(value, kMaxVocabularySize, "an id of post_processor"));
    if (!Exists(spec, id)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "post_processor adds the id ", id, ", which no token has"));
    }
    ids.push_back(id);
  }
  return ids;
}

struct Template {
  std::vector<TokenId> prefix = {};
  std::vector<TokenId> suffix = {};
};

// Only "single" matters: pairs of texts are never encoded.
absl::StatusOr<Template> ParseTemplate(const JsonFields& processor,
                                       const TokenizerSpec& spec) {
  OUTRIDER_RETURN_IF_ERROR(
      processor.AllAmong({"type", "single", "pair", "special_tokens"}));
  OUTRIDER_ASSIGN_OR_RETURN(const json* pieces, processor.Array("single"));
  Template result;
  bool text_seen = false;
  for (const json& item : *pieces) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const JsonFields piece,
        JsonFields::Of(item, "a piece of post_processor.single"));
    OUTRIDER_RETURN_IF_ERROR(piece.AllAmong({"SpecialToken", "Sequence"}));
    if (piece.Find("Sequence") != nullptr) {
      OUTRIDER_ASSIGN_OR_RETURN(const JsonFields sequence,
                                piece.Object("Sequence"));
      OUTRIDER_ASSIGN_OR_RETURN(const std::string id, sequence.String("id"));
      if (text_seen || id != "A" || piece.Find("SpecialToken") != nullptr) {
        return processor.Unsupported(
            "single with more than the one sequence A");
      }
      text_seen = true;
      continue;
    }
    OUTRIDER_ASSIGN_OR_RETURN(const JsonFields special,
                              piece.Object("SpecialToken"));
    OUTRIDER_ASSIGN_OR_RETURN(const std::string name, special.String("id"));
    OUTRIDER_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                              SpecialIds(processor, name, spec));
    std::vector<TokenId>& side = text_seen ? result.suffix : result.prefix;
    side.insert(side.end(), ids.begin(), ids.end());
    if (side.size() > kMaxTemplateTokens) {
      return processor.Invalid(absl::StrCat("single adds more than ",
                                            kMaxTemplateTokens, " tokens"));
    }
  }
  if (!text_seen) {
    return processor.Invalid("single has no sequence A");
  }
  return result;
}

}  // namespace

absl::Status ApplyPostProcessor(const json& value, TokenizerSpec* spec) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(value, "post_processor"));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "ByteLevel") return absl::OkStatus();
  if (type == "Sequence") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "processors"}));
    OUTRIDER_ASSIGN_OR_RETURN(const json* parts, fields.Array("processors"));
    for (const json& part : *parts) {
      OUTRIDER_RETURN_IF_ERROR(ApplyPostProcessor(part, spec));
    }
    return absl::OkStatus();
  }
  if (type != "TemplateProcessing") {
    return fields.Unsupported(absl::StrCat("type ", type));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const Template around,
                            ParseTemplate(fields, *spec));
  spec->prefix.insert(spec->prefix.begin(), around.prefix.begin(),
                      around.prefix.end());
  spec->suffix.insert(spec->suffix.end(), around.suffix.begin(),
                      around.suffix.end());
  return absl::OkStatus();
}

}  // namespace outrider
