// SPDX-License-Identifier: Apache-2.0
#include "client/generate_flags.h"

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/processing_flags.h"
#include "client/utf8.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/sampling/draft_flags.h"
#include "core/sampling/rule_names.h"
#include "core/sampling/sampling_params.h"
#include "core/wire/message_limits.h"
#include "core/wire/reply_format_names.h"

namespace outrider::client {
namespace {

constexpr uint64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

constexpr char kFooter[] =
    R"(Without --json and --json-rounds, standard output carries the text and nothing
else; a summary goes to standard error. On a terminal the prompt is dimmed,
accepted drafts are green, the target's replacements of refused drafts yellow,
its bonus tokens after fully accepted drafts cyan.

Exit status: 0 done, 1 the call failed, 2 bad flags, 130 interrupted.

Examples:
  outrider generate "def fibonacci(n):"
  outrider generate -k 0 --temperature 0 --max-tokens 64 "import "
  outrider generate --coordinator 127.0.0.1:7010 --prompt-file main.py --json
  echo 'class Queue:' | outrider generate --prompt-file - --stop $'\n\n')";

void AddPromptFlags(CLI::App& command, GenerateFlags& flags) {
  command.add_option("prompt", flags.prompt,
                     "the text to continue; may be empty where the\n"
                     "model's tokenizer adds a token to it");
  command
      .add_option("--prompt-file", flags.prompt_file,
                  "continue a file's text; - is standard input")
      ->type_name("FILE");
  command
      .add_option("--prompt-tokens", flags.prompt_tokens,
                  "continue token ids, such as \"0 17 4\"")
      ->type_name("IDS");
  command
      .add_option("--resume-tokens", flags.resume_tokens,
                  "go on after the tokens of a broken stream; - is standard\n"
                  "input, @FILE a file's; needs the request as it was, and\n"
                  "that stream's --seed and --resume-model: what broke it,\n"
                  "says them all")
      ->type_name("IDS");
  command
      .add_option("--resume-model", flags.resume_model,
                  "the model that gave --resume-tokens; another one is refused")
      ->type_name("MODEL");
}

void AddSamplingFlags(CLI::App& command, GenerateFlags& flags) {
  GenerationRequest& request = flags.request;
  command
      .add_option("--temperature", request.temperature,
                  "0 to 10; 0 is greedy; default 1")
      ->type_name("T")
      ->check(NumberIn(kTemperatures));
  command
      .add_option("--top-p", request.top_p,
                  "sample from the most probable tokens that "
                  "have this mass")
      ->type_name("P")
      ->check(NumberIn(kTopPs));
  command
      .add_option("--top-k", request.top_k,
                  "sample from this many tokens; 0 is off")
      ->type_name("N")
      ->check(WholeNumberIn(0, std::numeric_limits<int32_t>::max()));
  command
      .add_option("--seed", request.seed,
                  "repeats a generation; default: a new one, which those get,\n"
                  "too, who ask for -k auto or --schedule auto where the text\n"
                  "depends on drafts")
      ->type_name("N")
      ->check(WholeNumberIn(0, std::numeric_limits<uint64_t>::max()));
  command
      .add_option("--max-tokens", request.max_tokens,
                  "stop after this many; default: the end of the context,\n"
                  "or of the verifiers' memory")
      ->type_name("N")
      ->check(WholeNumberIn(1, kMaxUint32));
  command
      .add_option("--stop", request.stop_strings,
                  "stop before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--stop-token-ids", flags.stop_token_ids,
                  "stop with any of these tokens, which has no text, such as\n"
                  "\"0 17 4\"; at most 64")
      ->type_name("IDS");
  command.add_flag("--ignore-eos", request.ignore_eos,
                   "go on after an end-of-text token");
}

void AddSpeculationFlags(CLI::App& command, GenerateFlags& flags) {
  GenerationRequest& request = flags.request;
  command
      .add_option_function<std::string>(
          "-k,--num-speculative-tokens",
          [&request](const std::string& text) {
            request.is_k_auto = text == "auto";
            uint32_t k = 0;
            if (!request.is_k_auto && absl::SimpleAtoi(text, &k)) {
              request.num_speculative_tokens = k;
            }
          },
          "K: drafts a round; 0 is plain decoding; auto: as many as\n"
          "pay, chosen for each round; default: the coordinator's,\n"
          "but a fixed one with --seed where the text depends on K")
      ->type_name("K")
      ->check(WholeNumberIn(0, kMaxUint32, "auto"));
  AddDraftOptionFlags(command, request.draft_options);
  AddNamedOption(command, "--schedule", request.schedule, ScheduleNames(),
                 "when the drafter works: sequential: in turns with the\n"
                 "verifier; ahead, predraft: meanwhile, as if all drafts\n"
                 "stood, or for the likeliest verdicts; auto: where that\n"
                 "pays; default: the coordinator's, but sequential with\n"
                 "--seed where the text depends on it")
      ->type_name("SCHEDULE");
  command.add_flag("--prompt-lookup,!--no-prompt-lookup", request.prompt_lookup,
                   "draft from the text so far where it repeats itself, and\n"
                   "ask the drafter elsewhere; default: the coordinator's");
  command
      .add_option("--acceptance-rule", flags.rule,
                  "rejection; block: judges a round's drafts together, and\n"
                  "accepts a few more; greedy (needs --temperature 0);\n"
                  "coupled: one seed gives one text, whatever K and\n"
                  "drafter; default: rejection")
      ->type_name("RULE")
      ->check(OneOf(RuleFlagNames()));
  command
      .add_option("--lossy-lenience", request.lossy_lenience,
                  "above 0, to 1, which is exact; below 1 more drafts are\n"
                  "accepted, and the text is not the target's any more;\n"
                  "with --acceptance-rule rejection only")
      ->type_name("L")
      ->check(NumberIn(kLossyLeniences));
  AddNamedOption(command, "--reply-format", request.reply_format,
                 ReplyFormatNames(),
                 "what the verifier sends back: sparse, tokens or full give\n"
                 "the same text; full-bfloat16 rounds the model's logits;\n"
                 "default: the coordinator's")
      ->type_name("FORMAT");
}

void AddCacheFlags(CLI::App& command, GenerateFlags& flags) {
  command
      .add_option("--cache-salt", flags.cache_salt,
                  "a secret of those whose prompts may share caches, so that\n"
                  "what was sent before is not computed again; @FILE: that\n"
                  "file's, without the end of its line, which `ps` does not\n"
                  "show, and which may begin with @; default: nothing is\n"
                  "shared")
      ->type_name("SALT");
}

void AddOutputFlags(CLI::App& command, GenerateFlags& flags) {
  command
      .add_option("--color", flags.color,
                  "auto, always or never; auto: on a terminal, unless\n"
                  "NO_COLOR is set")
      ->type_name("WHEN")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  command.add_flag("--json", flags.json,
                   "print one JSON object: tokens, totals, timings, and what\n"
                   "failed");
  command.add_flag("--json-rounds", flags.json_rounds,
                   "the same with every round, hundreds of bytes each");
}

// Ids separated by spaces or commas.
absl::StatusOr<TokenSeq> ParseIds(absl::string_view flag,
                                  absl::string_view ids) {
  TokenSeq tokens;
  for (const absl::string_view id :
       absl::StrSplit(ids, absl::ByAnyChar(" ,\t\n"), absl::SkipEmpty())) {
    TokenId token = 0;
    if (!absl::SimpleAtoi(id, &token) || token < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, " needs token ids, such as \"0 17 4\", not \"", id, "\""));
    }
    tokens.push_back(token);
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is empty: give at least one token id"));
  }
  return tokens;
}

// No coordinator takes a longer request, and some files have no end. The rest
// is for what a request has besides, of which a thousand biases take the most.
constexpr size_t kMostBytes = kMaxGenerateRequestBytes - (32 << 10);

absl::StatusOr<std::string> ReadFile(absl::string_view flag,
                                     const std::string& path,
                                     std::istream& in) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& source = path == "-" ? in : file;
  std::string text;
  std::array<char, 4096> chunk;
  while (source.read(chunk.data(), chunk.size()) || source.gcount() > 0) {
    text.append(chunk.data(), source.gcount());
    if (text.size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": \"", path, "\" has more than ", kMostBytes >> 10,
          " KiB, for which no request has room"));
    }
  }
  // A folder can be opened, but not read: bad, and no end.
  if (!source.eof()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": cannot read \"", path, "\""));
  }
  return text;
}

// Protocol buffers carry no other text.
absl::Status CheckText(absl::string_view what, absl::string_view text) {
  const std::optional<size_t> place = FindInvalidUtf8(text);
  if (!place.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is not UTF-8 text: byte ", *place,
                   " begins no character; convert it first"));
}

absl::StatusOr<std::variant<std::string, TokenSeq>> ToPrompt(
    const GenerateFlags& flags, std::istream& in) {
  const int num_given = flags.prompt.has_value() +
                        flags.prompt_file.has_value() +
                        flags.prompt_tokens.has_value();
  if (num_given != 1) {
    return absl::InvalidArgumentError(
        "give one prompt: its text, --prompt-file FILE or --prompt-tokens IDS");
  }
  if (flags.prompt_tokens) {
    return ParseIds("--prompt-tokens", *flags.prompt_tokens);
  }
  std::string text;
  if (flags.prompt) {
    text = *flags.prompt;
  } else {
    OUTRIDER_ASSIGN_OR_RETURN(
        text, ReadFile("--prompt-file", *flags.prompt_file, in));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckText("the prompt", text));
  return text;
}

// Each would get what the other leaves.
absl::Status CheckReaders(const GenerateFlags& flags) {
  std::vector<absl::string_view> readers;  // of standard input
  if (flags.prompt_file == "-") readers.emplace_back("--prompt-file");
  if (flags.resume_tokens == "-" || flags.resume_tokens == "@-") {
    readers.emplace_back("--resume-tokens");
  }
  if (flags.cache_salt == "@-") readers.emplace_back("--cache-salt");
  if (readers.size() < 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(readers[0], " and ", readers[1],
                   " cannot both read standard input: give one a file"));
}

absl::StatusOr<TokenSeq> ToDelivered(const GenerateFlags& flags,
                                     std::istream& in) {
  constexpr absl::string_view kFlag = "--resume-tokens";
  std::string ids = *flags.resume_tokens;
  const bool reads_input = ids == "-";
  if (reads_input || absl::StartsWith(ids, "@")) {
    const std::string path = reads_input ? ids : ids.substr(1);
    OUTRIDER_ASSIGN_OR_RETURN(ids, ReadFile(kFlag, path, in));
  }
  return ParseIds(kFlag, ids);
}

absl::StatusOr<std::string> ToSalt(const std::string& text, std::istream& in) {
  constexpr absl::string_view kFlag = "--cache-salt";
  std::string salt = text;
  if (absl::StartsWith(text, "@")) {
    OUTRIDER_ASSIGN_OR_RETURN(salt, ReadFile(kFlag, text.substr(1), in));
    salt = std::string(absl::StripSuffix(absl::StripSuffix(salt, "\n"), "\r"));
    if (salt.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kFlag, ": \"", text.substr(1), "\" is empty"));
    }
  }
  OUTRIDER_RETURN_IF_ERROR(CheckText(kFlag, salt));
  return salt;
}

// The flag's own check has seen that there is a rule of this name. That it was
// greedy the coordinator does not see: what this excludes is refused here.
absl::StatusOr<RuleKind> ToRule(absl::string_view name,
                                const GenerationRequest& request) {
  const bool is_greedy = name == kGreedyRuleName;
  if (is_greedy && request.temperature.value_or(1) >= kGreedyTemperature) {
    return absl::InvalidArgumentError(
        "--acceptance-rule greedy needs --temperature 0");
  }
  if (is_greedy && request.lossy_lenience.value_or(1) < 1) {
    return absl::InvalidArgumentError(
        "--acceptance-rule greedy knows no --lossy-lenience: leave one of the "
        "two out");
  }
  return RuleOfName(name).value();
}

}  // namespace

void AddGenerateFlags(CLI::App& command, GenerateFlags& flags) {
  AddCoordinatorFlags(
      command, flags.target,
      ", and a stream that breaks goes on there, or at the same where that is "
      "a name, as it may stand for several");
  AddPromptFlags(command, flags);
  AddSpeculationFlags(command, flags);
  AddSamplingFlags(command, flags);
  AddProcessingFlags(command, flags);
  AddCacheFlags(command, flags);
  AddOutputFlags(command, flags);
  command.footer(kFooter);
}

absl::StatusOr<GenerationRequest> ToRequest(const GenerateFlags& flags,
                                            std::istream& in) {
  OUTRIDER_RETURN_IF_ERROR(CheckCoordinatorFlags(flags.target));
  OUTRIDER_RETURN_IF_ERROR(CheckReaders(flags));
  GenerationRequest request = flags.request;
  OUTRIDER_ASSIGN_OR_RETURN(request.prompt, ToPrompt(flags, in));
  for (const std::string& stop : request.stop_strings) {
    OUTRIDER_RETURN_IF_ERROR(CheckText("--stop", stop));
  }
  if (flags.stop_token_ids) {
    OUTRIDER_ASSIGN_OR_RETURN(
        request.stop_token_ids,
        ParseIds("--stop-token-ids", *flags.stop_token_ids));
  }
  if (flags.cache_salt) {
    OUTRIDER_ASSIGN_OR_RETURN(request.cache_salt,
                              ToSalt(*flags.cache_salt, in));
  }
  OUTRIDER_ASSIGN_OR_RETURN(request.logit_bias,
                            ParseLogitBias(flags.logit_bias));
  OUTRIDER_RETURN_IF_ERROR(CheckLogprobsFlags(flags));
  if (flags.rule) {
    OUTRIDER_ASSIGN_OR_RETURN(request.acceptance_rule,
                              ToRule(*flags.rule, request));
  }
  if (flags.resume_model) {
    OUTRIDER_ASSIGN_OR_RETURN(request.model,
                              ParseModelIdentity(*flags.resume_model));
  }
  if (flags.resume_tokens) {
    if (!request.seed || !request.model) {
      return absl::InvalidArgumentError(
          "--resume-tokens needs --seed and --resume-model, as the broken "
          "stream had them");
    }
    OUTRIDER_ASSIGN_OR_RETURN(request.delivered, ToDelivered(flags, in));
  }
  return request;
}

}  // namespace outrider::client
