// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/vocabulary_json.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using nlohmann::json;
using Ids = absl::flat_hash_map<absl::string_view, TokenId>;

// Bounds the search structure over added tokens and the time of a search.
constexpr size_t kMaxAddedTokenBytes = 1024;
constexpr size_t kMaxAddedTokensBytes = 4 << 20;

absl::Status RefuseUnknownParts(const JsonFields& model) {
  OUTRIDER_RETURN_IF_ERROR(model.AllAmong(
      {"type", "dropout", "unk_token", "continuing_subword_prefix",
       "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
       "vocab", "merges"}));
  // Old files do not name the type.
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type,
                            model.String("type", "BPE"));
  if (type != "BPE") {
    return model.Unsupported(absl::StrCat("type '", type, "'"));
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::string affix, model.String(name, ""));
    if (!affix.empty()) {
      return model.Unsupported(name);
    }
  }
  const json* dropout = model.Find("dropout");
  if (dropout != nullptr && *dropout != json(0.0)) {
    return model.Unsupported("dropout");
  }
  return absl::OkStatus();
}

absl::Status ParseVocabulary(const json& vocabulary, BpeSpec* bpe) {
  for (const auto& [token, id_value] : vocabulary.items()) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const int id, JsonIndex(id_value, kMaxVocabularySize,
                                absl::StrCat("the id of token '", token, "'")));
    if (static_cast<size_t>(id) >= bpe->tokens.size()) {
      bpe->tokens.resize(id + 1);
    }
    if (bpe->tokens[id]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the id ", id, " is that of '", *bpe->tokens[id],
                       "' and of '", token, "'"));
    }
    bpe->tokens[id] = token;
  }
  return absl::OkStatus();
}

Ids IdsOf(const BpeSpec& bpe) {
  Ids ids;
  ids.reserve(bpe.tokens.size());
  for (size_t id = 0; id < bpe.tokens.size(); ++id) {
    if (bpe.tokens[id]) ids.emplace(*bpe.tokens[id], static_cast<TokenId>(id));
  }
  return ids;
}

absl::StatusOr<TokenId> IdOf(const Ids& ids, absl::string_view token) {
  const auto it = ids.find(token);
  if (it == ids.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", token, "' is not in the vocabulary"));
  }
  return it->second;
}

// "left right" in old files, ["left", "right"] in new ones.
absl::StatusOr<std::pair<absl::string_view, absl::string_view>> MergeSides(
    const json& merge) {
  if (merge.is_string()) {
    const std::vector<absl::string_view> sides =
        absl::StrSplit(merge.get_ref<const std::string&>(), ' ');
    if (sides.size() == 2) return std::make_pair(sides[0], sides[1]);
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return std::make_pair(
        absl::string_view(merge[0].get_ref<const std::string&>()),
        absl::string_view(merge[1].get_ref<const std::string&>()));
  }
  return absl::InvalidArgumentError(
      "model: an entry of merges is not a pair of tokens");
}

bool IsVersionLine(const json& merge) {
  return merge.is_string() &&
         absl::StartsWith(merge.get_ref<const std::string&>(), "#version");
}

absl::Status ParseMerges(const json& merges, const Ids& ids, BpeSpec* bpe) {
  bpe->merges.reserve(merges.size());
  for (const json& merge : merges) {
    if (IsVersionLine(merge)) continue;
    OUTRIDER_ASSIGN_OR_RETURN(const auto sides, MergeSides(merge));
    OUTRIDER_ASSIGN_OR_RETURN(const TokenId left, IdOf(ids, sides.first));
    OUTRIDER_ASSIGN_OR_RETURN(const TokenId right, IdOf(ids, sides.second));
    OUTRIDER_ASSIGN_OR_RETURN(
        const TokenId merged,
        IdOf(ids, absl::StrCat(sides.first, sides.second)));
    bpe->merges.push_back({.left = left, .right = right, .merged = merged});
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> ParseAddedToken(const json& value) {
  AddedToken token;
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(value, "an added token"));
  OUTRIDER_RETURN_IF_ERROR(
      fields.AllAmong({"id", "content", "single_word", "lstrip", "rstrip",
                       "normalized", "special"}));
  OUTRIDER_ASSIGN_OR_RETURN(token.content, fields.String("content"));
  OUTRIDER_ASSIGN_OR_RETURN(const json* id, fields.Any("id"));
  OUTRIDER_ASSIGN_OR_RETURN(
      token.id, JsonIndex(*id, kMaxVocabularySize, "the id of an added token"));
  OUTRIDER_ASSIGN_OR_RETURN(token.single_word,
                            fields.Bool("single_word", false));
  OUTRIDER_ASSIGN_OR_RETURN(token.lstrip, fields.Bool("lstrip", false));
  OUTRIDER_ASSIGN_OR_RETURN(token.rstrip, fields.Bool("rstrip", false));
  OUTRIDER_ASSIGN_OR_RETURN(token.special, fields.Bool("special", false));
  OUTRIDER_ASSIGN_OR_RETURN(token.normalized,
                            fields.Bool("normalized", !token.special));
  if (token.content.size() > kMaxAddedTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an added token has ", token.content.size(),
                     " bytes, more than ", kMaxAddedTokenBytes));
  }
  return token;
}

// The ids that the reference gives to added tokens, in order: that of the
// vocabulary, or else the next one after the vocabulary's size and the added
// tokens so far.
class AddedIds {
 public:
  explicit AddedIds(const BpeSpec& bpe)
      : bpe_(bpe), ids_(IdsOf(bpe)), next_(static_cast<TokenId>(ids_.size())) {}

  absl::Status Check(const AddedToken& token) {
    if (!seen_.insert(token.content).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the added token '", token.content, "' occurs twice"));
    }
    const auto it = ids_.find(token.content);
    const TokenId expected = it == ids_.end() ? next_ : it->second;
    if (token.id != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("the added token '", token.content, "' has the id ",
                       token.id, " instead of ", expected));
    }
    if (it == ids_.end() && IsInVocabulary(token.id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the added token '", token.content, "' has the id ",
                       token.id, " of '", *bpe_.tokens[token.id], "'"));
    }
    next_ = std::max(next_, token.id + 1);
    return absl::OkStatus();
  }

 private:
  bool IsInVocabulary(TokenId id) const {
    return static_cast<size_t>(id) < bpe_.tokens.size() && bpe_.tokens[id];
  }

  const BpeSpec& bpe_;
  const Ids ids_;
  TokenId next_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

absl::StatusOr<BpeSpec> ParseBpe(const JsonFields& model) {
  OUTRIDER_RETURN_IF_ERROR(RefuseUnknownParts(model));
  BpeSpec bpe;
  OUTRIDER_ASSIGN_OR_RETURN(bpe.fuse_unknown, model.Bool("fuse_unk", false));
  OUTRIDER_ASSIGN_OR_RETURN(bpe.byte_fallback,
                            model.Bool("byte_fallback", false));
  OUTRIDER_ASSIGN_OR_RETURN(bpe.ignore_merges,
                            model.Bool("ignore_merges", false));
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields vocabulary, model.Object("vocab"));
  OUTRIDER_RETURN_IF_ERROR(ParseVocabulary(vocabulary.value(), &bpe));
  const Ids ids = IdsOf(bpe);
  OUTRIDER_ASSIGN_OR_RETURN(const json* merges, model.Array("merges"));
  OUTRIDER_RETURN_IF_ERROR(ParseMerges(*merges, ids, &bpe));
  if (model.Find("unk_token") != nullptr) {
    OUTRIDER_ASSIGN_OR_RETURN(const std::string unknown,
                              model.String("unk_token"));
    OUTRIDER_ASSIGN_OR_RETURN(bpe.unknown, IdOf(ids, unknown));
  }
  return bpe;
}

absl::StatusOr<std::vector<AddedToken>> ParseAddedTokens(const json& value,
                                                         const BpeSpec& bpe) {
  if (!value.is_array()) {
    return absl::InvalidArgumentError("added_tokens is not an array");
  }
  std::vector<AddedToken> tokens;
  AddedIds ids(bpe);
  size_t num_bytes = 0;
  for (const json& item : value) {
    OUTRIDER_ASSIGN_OR_RETURN(AddedToken token, ParseAddedToken(item));
    if (token.content.empty()) continue;  // as in the reference
    OUTRIDER_RETURN_IF_ERROR(ids.Check(token));
    num_bytes += token.content.size();
    if (num_bytes > kMaxAddedTokensBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the added tokens have more than ", kMaxAddedTokensBytes, " bytes"));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace outrider
