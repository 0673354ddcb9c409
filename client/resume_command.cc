// SPDX-License-Identifier: Apache-2.0
#include "client/resume_command.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "core/base/error_reason.h"

namespace outrider::client {
namespace {

constexpr std::array<absl::string_view, 4> kOwnFlags = {
    "--seed", "--resume-model", "--resume-tokens", "--cache-salt"};

// Linux runs no program that has a longer argument.
constexpr size_t kLongestArgument = 128 * 1024 - 1;

// The word in such quotes that a shell reads it back.
std::string Quoted(absl::string_view word) {
  const bool is_plain =
      !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
        return absl::ascii_isalnum(c) ||
               absl::string_view("-_./:=,@%+").find(c) !=
                   absl::string_view::npos;
      });
  if (is_plain) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// The words without the flags that a resume sets anew, and their values.
std::vector<std::string> WithoutOwnFlags(
    const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {  // after it there are no flags
      kept.insert(kept.end(), words.begin() + i, words.end());
      break;
    }
    bool is_own = false;
    for (const absl::string_view flag : kOwnFlags) {
      if (words[i] == flag) {
        is_own = true;
        ++i;  // its value
        break;
      }
      if (absl::StartsWith(words[i], absl::StrCat(flag, "="))) is_own = true;
    }
    if (!is_own) kept.push_back(words[i]);
  }
  return kept;
}

}  // namespace

ResumeFlags ToResumeFlags(const GenerationRequest& request) {
  return {.seed = absl::StrCat(request.seed.value_or(0)),
          .model = ToText(request.model.value_or(ModelIdentity())),
          .tokens = absl::StrJoin(request.delivered.value_or(TokenSeq()), " "),
          .salt = request.cache_salt};
}

bool CanResume(const GenerationRequest& request, const absl::Status& failure) {
  return !absl::IsInvalidArgument(failure) &&
         ErrorReasonOf(failure) != kPoisonReason && request.seed.has_value() &&
         request.model.has_value() && request.delivered.has_value() &&
         !request.delivered->empty();
}

bool NeedsBash(const ResumeFlags& flags) {
  return flags.tokens.size() > kLongestArgument;
}

std::string ResumeCommand(const std::vector<std::string>& words,
                          const ResumeFlags& flags) {
  std::vector<std::string> command = WithoutOwnFlags(words);
  // They follow "outrider generate", as a "--" may stand further on.
  const auto place =
      command.begin() + std::min<std::ptrdiff_t>(2, std::ssize(command));
  // A here-string is no argument. It is not of standard input, which the prompt
  // may come from.
  const bool fits = !NeedsBash(flags);
  std::vector<std::string> own = {
      "--seed",    flags.seed,        "--resume-model",
      flags.model, "--resume-tokens", fits ? flags.tokens : "@/dev/fd/3"};
  if (!flags.salt.empty()) own.insert(own.end(), {"--cache-salt", flags.salt});
  command.insert(place, own.begin(), own.end());
  std::string line = absl::StrJoin(
      command, " ",
      [](std::string* out, const auto& word) { out->append(Quoted(word)); });
  if (!fits) absl::StrAppend(&line, " 3<<< ", Quoted(flags.tokens));
  return line;
}

}  // namespace outrider::client
