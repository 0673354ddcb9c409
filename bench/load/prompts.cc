// SPDX-License-Identifier: Apache-2.0
#include "bench/load/prompts.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace outrider::bench {
namespace {

using Json = nlohmann::json;

bool IsTokens(const Json& json) {
  if (!json.is_array() || json.empty()) return false;
  for (const Json& id : json) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > (1U << 30)) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<Prompt> ParseLine(const std::string& line) {
  const Json json = Json::parse(line, /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError("is no JSON object");
  }
  const auto it = json.find("prompt");
  if (it == json.end()) {
    return absl::InvalidArgumentError("has no \"prompt\"");
  }
  if (it->is_string() && !it->get_ref<const std::string&>().empty()) {
    return Prompt(it->get<std::string>());
  }
  if (IsTokens(*it)) return Prompt(it->get<TokenSeq>());
  return absl::InvalidArgumentError(
      "has a \"prompt\" that is neither text nor token ids");
}

}  // namespace

absl::StatusOr<std::vector<Prompt>> LoadPrompts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("--prompts: cannot read \"", path, "\""));
  }
  std::vector<Prompt> prompts;
  std::set<Prompt> seen;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    absl::StatusOr<Prompt> prompt = ParseLine(line);
    if (!prompt.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--prompts: line ", number, " of \"", path, "\" ",
          prompt.status().message(),
          "; needed is JSONL: {\"prompt\": \"def f():\"} on each line"));
    }
    if (seen.insert(*prompt).second) prompts.push_back(*std::move(prompt));
  }
  if (prompts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--prompts: \"", path, "\" has no prompt"));
  }
  return prompts;
}

std::vector<Prompt> MakePrompts(int count, int length, int vocab_size) {
  std::mt19937_64 random(20231121);
  std::vector<Prompt> prompts;
  for (int i = 0; i < count; ++i) {
    TokenSeq tokens;
    for (int j = 0; j < length; ++j) {
      tokens.push_back(static_cast<TokenId>(random() % vocab_size));
    }
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

}  // namespace outrider::bench
