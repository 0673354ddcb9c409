// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/tokenizer_loader.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/bpe_tokenizer.h"
#include "core/tokenizer/tokenizer_json.h"

namespace outrider {
namespace {

constexpr size_t kMaxFileBytes = 32 << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError("no such file");
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError("not a regular file");
  }
  std::ifstream file(path, std::ios::binary);
  // One byte more than allowed, so that what is too long shows.
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file.good()) {
    return absl::InvalidArgumentError("cannot be read");
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has more than ", kMaxFileBytes, " bytes"));
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFile(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  OUTRIDER_ASSIGN_OR_RETURN(const TokenizerSpec spec, ParseTokenizerJson(text));
  return std::make_unique<BpeTokenizer>(spec);
}

}  // namespace

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
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadFile(path);
  if (tokenizer.ok()) return tokenizer;
  return absl::Status(tokenizer.status().code(),
                      absl::StrCat(path, ": ", tokenizer.status().message()));
}

}  // namespace outrider
