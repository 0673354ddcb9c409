// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/tokenizer_loader.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/read_only_file.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/bpe_tokenizer.h"
#include "core/tokenizer/eos_token.h"
#include "core/tokenizer/tokenizer_json.h"

namespace outrider {
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat(
        directory,
        ": no such directory; a model directory holds config.json, "
        "*.safetensors and tokenizer.json"));
  }
  const std::string path = absl::StrCat(directory, "/tokenizer.json");
  OUTRIDER_ASSIGN_OR_RETURN(const std::string text,
                            ReadWholeFile(path, kMaxTokenizerJsonBytes));
  OUTRIDER_ASSIGN_OR_RETURN(const TokenizerSpec spec,
                            ParseTokenizerJson(text, path));
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<TokenId> eos_id,
                            ReadEosToken(directory, spec));
  return std::make_unique<BpeTokenizer>(spec, eos_id);
}

}  // namespace outrider
