// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/eos_token.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/json/json_fields.h"
#include "core/json/strict_json.h"
#include "core/tokenizer/tokenizer_json.h"

namespace outrider {
namespace {

std::optional<TokenId> FindToken(const TokenizerSpec& spec,
                                 const std::string& content) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.content == content) return token.id;
  }
  for (size_t id = 0; id < spec.bpe.tokens.size(); ++id) {
    if (spec.bpe.tokens[id] == content) return static_cast<TokenId>(id);
  }
  return std::nullopt;
}

// A string, or an object that says more of the token. Empty where there is
// none.
absl::StatusOr<std::string> ReadContent(const JsonFields& config) {
  const nlohmann::json* token = config.Find("eos_token");
  if (token == nullptr) return "";
  if (!token->is_object()) return config.String("eos_token");
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            config.Object("eos_token"));
  return fields.String("content");
}

}  // namespace

absl::StatusOr<std::optional<TokenId>> ReadEosToken(
    const std::string& directory, const TokenizerSpec& spec) {
  const std::string path = absl::StrCat(directory, "/tokenizer_config.json");
  const auto config =
      ReadStrictJson(path, {.max_bytes = kMaxTokenizerJsonBytes});
  if (absl::IsNotFound(config.status())) return std::nullopt;
  OUTRIDER_RETURN_IF_ERROR(config.status());
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(*config, path));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string content, ReadContent(fields));
  if (content.empty()) return std::nullopt;
  const std::optional<TokenId> id = FindToken(spec, content);
  if (!id) {
    OUTRIDER_LOG(kWarning) << path << ": the eos_token " << content
                           << " is none of tokenizer.json: no text ends at it";
  }
  return id;
}

}  // namespace outrider
