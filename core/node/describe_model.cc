// SPDX-License-Identifier: Apache-2.0
#include "core/node/describe_model.h"

#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace outrider {
namespace {

std::vector<TokenId> EosIds(const Tokenizer& tokenizer, const ModelInfo& info) {
  std::vector<TokenId> ids = info.eos_ids;
  const std::optional<TokenId> own = tokenizer.eos_id();
  if (own && !absl::c_linear_search(ids, *own)) ids.push_back(*own);
  return ids;
}

}  // namespace

NodeDescription DescribeModel(const Tokenizer& tokenizer,
                              const ModelInfo& info) {
  return {.model_name = info.name,
          .weights_hash = info.weights_hash,
          .tokenizer_hash = tokenizer.fingerprint(),
          .vocab_size = tokenizer.vocab_size(),
          .eos_ids = EosIds(tokenizer, info),
          .context_length = info.context_length,
          .dtype = info.dtype,
          .device = info.device,
          .numerics = info.numerics};
}

absl::Status CheckHeadCovers(const Tokenizer& tokenizer,
                             const ModelInfo& info) {
  if (info.vocab_size < tokenizer.vocab_size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tokenizer.json has ids up to ", tokenizer.vocab_size() - 1,
        ", the model's head only ", info.vocab_size,
        " rows: the directory mixes files of two models"));
  }
  for (const TokenId id : info.eos_ids) {
    if (id < tokenizer.vocab_size()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "eos_token_id ", id, " is none of tokenizer.json, whose ids end at ",
        tokenizer.vocab_size() - 1,
        ": no text could end with it. Correct it in config.json or "
        "generation_config.json, or add its token to tokenizer.json"));
  }
  return absl::OkStatus();
}

void WarnOfEndlessTexts(const NodeDescription& description) {
  if (!description.eos_ids.empty()) return;
  OUTRIDER_LOG(kWarning)
      << description.model_name
      << " has no end-of-sequence token: its texts end at a limit or at a "
         "request's own stops. Set eos_token_id in its config.json or "
         "generation_config.json, or eos_token in its tokenizer_config.json";
}

std::string Summary(const NodeDescription& description) {
  return absl::StrCat(description.model_name, ", ", description.dtype, " on ",
                      description.device);
}

}  // namespace outrider
