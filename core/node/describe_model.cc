// SPDX-License-Identifier: Apache-2.0
#include "core/node/describe_model.h"

#include "absl/strings/str_cat.h"

namespace outrider {

NodeDescription DescribeModel(const Tokenizer& tokenizer,
                              const ModelInfo& info) {
  return {.model_name = info.name,
          .weights_hash = info.weights_hash,
          .tokenizer_hash = tokenizer.fingerprint(),
          .vocab_size = tokenizer.vocab_size(),
          .eos_ids = info.eos_ids,
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

std::string Summary(const NodeDescription& description) {
  return absl::StrCat(description.model_name, ", ", description.dtype, " on ",
                      description.device);
}

}  // namespace outrider
