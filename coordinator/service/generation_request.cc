// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/generation_request.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/nodes/text_promise.h"
#include "coordinator/service/prompt.h"
#include "coordinator/service/served_options.h"
#include "core/base/error_reason.h"
#include "core/base/session_id.h"
#include "core/base/status_macros.h"
#include "core/session/check_tokens.h"
#include "core/wire/field_convert.h"
#include "core/wire/generation_convert.h"

namespace outrider {
namespace {

constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopStringBytes = 256;
constexpr int kMaxStopTokenIds = 64;

absl::StatusOr<std::vector<TokenId>> ParsePrompt(
    const v1::GenerateRequest& proto, const GenerationLimits& limits) {
  std::vector<TokenId> prompt(proto.tokens().ids().begin(),
                              proto.tokens().ids().end());
  if (proto.prompt_case() == v1::GenerateRequest::kText) {
    OUTRIDER_ASSIGN_OR_RETURN(prompt, Tokenize(proto.text(), limits));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckPrompt(prompt, limits));
  return prompt;
}

absl::StatusOr<SamplingParams> ParseSampling(const v1::GenerateRequest& proto,
                                             const GenerationLimits& limits) {
  SamplingParams params = {.min_p = proto.min_p(),
                           .presence_penalty = proto.presence_penalty(),
                           .frequency_penalty = proto.frequency_penalty(),
                           .logit_bias = FromProto(proto.logit_bias())};
  if (proto.has_temperature()) params.temperature = proto.temperature();
  if (proto.has_top_k()) params.top_k = proto.top_k();
  if (proto.has_top_p()) params.top_p = proto.top_p();
  if (proto.has_repetition_penalty()) {
    params.repetition_penalty = proto.repetition_penalty();
  }
  if (proto.has_lossy_lenience()) {
    params.lossy_lenience = proto.lossy_lenience();
  }
  // Callers may name the tokens in any order.
  std::stable_sort(
      params.logit_bias.begin(), params.logit_bias.end(),
      [](const LogitBias& a, const LogitBias& b) { return a.id < b.id; });
  OUTRIDER_RETURN_IF_ERROR(Validate(params, limits.vocab_size));
  return params;
}

absl::StatusOr<std::optional<LogprobsOptions>> ParseLogprobs(
    const v1::GenerateRequest& proto) {
  LogprobsOptions options;
  switch (proto.logprobs_mode()) {
    case v1::LOGPROBS_MODE_UNSPECIFIED:
    case v1::LOGPROBS_MODE_RAW:
      break;
    case v1::LOGPROBS_MODE_PROCESSED:
      options.mode = LogprobsMode::kProcessed;
      break;
    default:
      return AtField("logprobs_mode",
                     absl::InvalidArgumentError(absl::StrCat(
                         "unknown logprobs_mode ", proto.logprobs_mode())));
  }
  if (!proto.has_logprobs()) {
    if (proto.logprobs_mode() == v1::LOGPROBS_MODE_UNSPECIFIED) {
      return std::nullopt;
    }
    return absl::InvalidArgumentError(
        "logprobs_mode needs logprobs, the number of alternatives: 0 shows "
        "the chosen tokens alone");
  }
  if (proto.logprobs() > kMaxTopLogprobs) {
    return absl::InvalidArgumentError(
        absl::StrCat("logprobs must be between 0 and ", kMaxTopLogprobs,
                     ", not ", proto.logprobs()));
  }
  options.num_top = static_cast<int>(proto.logprobs());
  return options;
}

absl::StatusOr<std::vector<std::string>> ParseStopStrings(
    const v1::GenerateRequest& proto, const GenerationLimits& limits) {
  if (proto.stop_strings_size() == 0) return std::vector<std::string>();
  if (limits.tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "stop strings need a coordinator with a tokenizer (--tokenizer)");
  }
  if (proto.stop_strings_size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxStopStrings,
                                                   " stop strings, not ",
                                                   proto.stop_strings_size()));
  }
  for (const std::string& stop : proto.stop_strings()) {
    if (stop.empty() || stop.size() > kMaxStopStringBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a stop string has 1 to ", kMaxStopStringBytes,
                       " bytes, not ", stop.size()));
    }
  }
  return std::vector<std::string>(proto.stop_strings().begin(),
                                  proto.stop_strings().end());
}

absl::StatusOr<std::vector<TokenId>> ParseStopTokenIds(
    const v1::GenerateRequest& proto, const GenerationLimits& limits) {
  if (proto.stop_token_ids_size() > kMaxStopTokenIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", kMaxStopTokenIds, " stop_token_ids, not ",
                     proto.stop_token_ids_size()));
  }
  std::vector<TokenId> ids(proto.stop_token_ids().begin(),
                           proto.stop_token_ids().end());
  if (const absl::Status status = CheckTokens(ids, limits.vocab_size);
      !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stop_token_ids: ", status.message()));
  }
  return ids;
}

absl::StatusOr<int> ParseMaxLength(const v1::GenerateRequest& proto,
                                   int prompt_length,
                                   const GenerationLimits& limits) {
  // What was begun goes on where there is memory for it, which may not be ready
  // at this moment: the session finds out whether there is.
  const int longest = proto.delivered().ids().empty() ? limits.longest_text
                                                      : limits.context_length;
  if (!proto.has_max_tokens()) return longest;
  if (proto.max_tokens() < 1) {
    return absl::InvalidArgumentError("max_tokens must be at least 1, not 0");
  }
  const uint64_t wanted = uint64_t{proto.max_tokens()} + prompt_length;
  return static_cast<int>(std::min<uint64_t>(wanted, longest));
}

// Whether K decides, besides the seed, which of the texts with the target's law
// comes out.
bool TextDependsOnDrafts(const GenerationRequest& request) {
  if (request.rule == RuleKind::kCoupled) return false;
  return !IsGreedy(request.sampling) || IsLossy(request.sampling);
}

// Where drafts decide the text, control must not have seen the coins that are
// flipped for it. It says whether a resume drafts, and has learned from rounds
// whose tokens were lost on the way: these flipped the coins of the broken
// stream's seed. (Who names a model resumes, with or without tokens.) And it
// chooses K, or whether to draft ahead, for a request that asks for that, maybe
// after one of the same seed. All these get a seed of their own. Needs all the
// rest.
uint64_t SeedOf(const v1::GenerateRequest& proto,
                const GenerationRequest& request) {
  const bool is_controlled =
      proto.has_model() ||
      request.draft_length_mode == DraftLengthMode::kAuto ||
      request.schedule == Schedule::kAuto;
  const bool needs_its_own = is_controlled &&
                             request.num_speculative_tokens > 0 &&
                             TextDependsOnDrafts(request);
  return proto.has_seed() && !needs_its_own ? proto.seed() : RandomSeed();
}

// Needs rule and sampling.
absl::Status ParseDraftLength(const v1::GenerateRequest& proto,
                              const GenerationLimits& limits,
                              GenerationRequest& request) {
  if (proto.has_num_speculative_tokens() &&
      proto.auto_num_speculative_tokens()) {
    return absl::InvalidArgumentError(
        "auto_num_speculative_tokens chooses num_speculative_tokens: leave one "
        "of the two out");
  }
  if (!proto.has_num_speculative_tokens()) {
    request.draft_length_mode = limits.default_draft_length_mode;
    // Who names a seed wants the same text again. A resume names it, too, and
    // does not get it where drafts decide the text (SeedOf).
    if (proto.has_seed() && !proto.has_model() &&
        TextDependsOnDrafts(request)) {
      request.draft_length_mode = DraftLengthMode::kFixed;
    }
    if (proto.auto_num_speculative_tokens()) {
      request.draft_length_mode = DraftLengthMode::kAuto;
    }
    const bool is_auto = request.draft_length_mode == DraftLengthMode::kAuto;
    request.num_speculative_tokens = std::min(
        is_auto ? SpeculationModel::kMostDrafts : limits.default_draft_tokens,
        limits.max_draft_tokens);
    return absl::OkStatus();
  }
  const uint32_t k = proto.num_speculative_tokens();
  // A resume asks for what its stream had, maybe of other nodes.
  if (!proto.has_model() &&
      k > static_cast<uint32_t>(limits.most_draft_tokens)) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_speculative_tokens must be between 0 and ",
                     limits.most_draft_tokens, ", not ", k));
  }
  request.num_speculative_tokens = static_cast<int>(
      std::min(k, static_cast<uint32_t>(limits.max_draft_tokens)));
  return absl::OkStatus();
}

// Needs rule and sampling.
absl::StatusOr<Schedule> ParseSchedule(const v1::GenerateRequest& proto,
                                       const GenerationLimits& limits,
                                       const GenerationRequest& request) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<Schedule> wanted,
                            FromProto(proto.schedule()));
  if (wanted.has_value()) return *wanted;
  // This is as of K. Who asks for K by round does not get the text either.
  const bool is_repeatable =
      proto.has_seed() && !proto.has_model() &&
      request.draft_length_mode != DraftLengthMode::kAuto &&
      TextDependsOnDrafts(request);
  return is_repeatable ? Schedule::kSequential : limits.default_schedule;
}

absl::StatusOr<RuleKind> ParseRule(const v1::GenerateRequest& proto,
                                   const SamplingParams& sampling,
                                   const GenerationLimits& limits) {
  const bool is_greedy = proto.acceptance_rule() == v1::ACCEPTANCE_RULE_GREEDY;
  if (is_greedy && !IsGreedy(sampling)) {
    return absl::InvalidArgumentError(
        absl::StrCat("acceptance_rule GREEDY needs temperature 0, not ",
                     sampling.temperature));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const RuleKind rule,
                            FromProto(proto.acceptance_rule()));
  // GREEDY, too, promises one text for one seed.
  if ((is_greedy || rule != RuleKind::kRejection) && IsLossy(sampling)) {
    return absl::InvalidArgumentError(
        "only acceptance_rule REJECTION knows a lossy_lenience: leave one of "
        "the two out");
  }
  OUTRIDER_RETURN_IF_ERROR(CheckServed(rule, limits));
  return rule;
}

absl::StatusOr<ReplyFormat> ParseReplyFormat(const v1::GenerateRequest& proto,
                                             RuleKind rule,
                                             const GenerationLimits& limits) {
  if (!proto.has_reply_format()) {
    return ChooseReplyFormat(/*named=*/std::nullopt, rule, limits);
  }
  OUTRIDER_ASSIGN_OR_RETURN(const ReplyFormat named,
                            FromProto(proto.reply_format()));
  return ChooseReplyFormat(named, rule, limits);
}

absl::StatusOr<std::vector<TokenId>> ParseDelivered(
    const v1::GenerateRequest& proto, const GenerationLimits& limits) {
  std::vector<TokenId> delivered(proto.delivered().ids().begin(),
                                 proto.delivered().ids().end());
  OUTRIDER_RETURN_IF_ERROR(CheckTokens(delivered, limits.vocab_size));
  if (delivered.empty()) return delivered;
  if (!proto.has_seed()) {
    return AtField(
        "seed", absl::InvalidArgumentError(
                    "a resume needs the seed that the broken stream reported"));
  }
  if (!proto.has_model()) {
    return AtField(
        "model",
        absl::InvalidArgumentError(
            "a resume needs the model that the broken stream reported"));
  }
  return delivered;
}

}  // namespace

bool IsResume(const v1::GenerateRequest& proto) {
  return proto.delivered().ids_size() > 0;
}

std::optional<WantedModel> WantedModelOf(const v1::GenerateRequest& proto) {
  if (!proto.has_model()) return std::nullopt;
  SamplingParams sampling;
  if (proto.has_temperature()) sampling.temperature = proto.temperature();
  const RuleKind rule = proto.acceptance_rule() == v1::ACCEPTANCE_RULE_COUPLED
                            ? RuleKind::kCoupled
                            : RuleKind::kRejection;
  return WantedModel{.model = FromProto(proto.model()),
                     .sameness = PromiseOf(sampling, rule)};
}

VerifierNeeds NeedsOf(const v1::GenerateRequest& proto,
                      const std::optional<ReplyFormat>& default_format) {
  VerifierNeeds needs;
  const absl::StatusOr<RuleKind> rule = FromProto(proto.acceptance_rule());
  if (!rule.ok()) return needs;
  needs.rule = *rule;
  if (!proto.has_reply_format()) {
    needs.reply_format = DefaultFormat(default_format, *rule);
  } else if (const auto named = FromProto(proto.reply_format()); named.ok()) {
    needs.reply_format = *named;
  }
  return needs;
}

absl::StatusOr<GenerationRequest> ParseRequest(const v1::GenerateRequest& proto,
                                               const GenerationLimits& limits) {
  GenerationRequest request;
  OUTRIDER_ASSIGN_OR_RETURN(request.prompt,
                            AtField("prompt", ParsePrompt(proto, limits)));
  OUTRIDER_ASSIGN_OR_RETURN(request.sampling, ParseSampling(proto, limits));
  OUTRIDER_ASSIGN_OR_RETURN(request.logprobs,
                            AtField("logprobs", ParseLogprobs(proto)));
  OUTRIDER_ASSIGN_OR_RETURN(
      request.stop_strings,
      AtField("stop_strings", ParseStopStrings(proto, limits)));
  OUTRIDER_ASSIGN_OR_RETURN(
      request.stop_token_ids,
      AtField("stop_token_ids", ParseStopTokenIds(proto, limits)));
  const int prompt_length = static_cast<int>(request.prompt.size());
  OUTRIDER_ASSIGN_OR_RETURN(
      request.max_length,
      AtField("max_tokens", ParseMaxLength(proto, prompt_length, limits)));
  OUTRIDER_ASSIGN_OR_RETURN(
      const DraftOverrides overrides,
      AtField("draft_options", FromProto(proto.draft_options())));
  OUTRIDER_ASSIGN_OR_RETURN(
      request.draft_options,
      AtField("draft_options", Resolve(overrides, limits.default_draft_options,
                                       limits.vocab_size)));
  request.prompt_lookup = proto.has_prompt_lookup()
                              ? proto.prompt_lookup()
                              : limits.default_prompt_lookup;
  OUTRIDER_ASSIGN_OR_RETURN(
      request.rule,
      AtField("acceptance_rule", ParseRule(proto, request.sampling, limits)));
  OUTRIDER_RETURN_IF_ERROR(AtField("num_speculative_tokens",
                                   ParseDraftLength(proto, limits, request)));
  OUTRIDER_ASSIGN_OR_RETURN(
      request.schedule,
      AtField("schedule", ParseSchedule(proto, limits, request)));
  OUTRIDER_ASSIGN_OR_RETURN(
      request.reply_format,
      AtField("reply_format", ParseReplyFormat(proto, request.rule, limits)));
  if (!proto.ignore_eos()) request.eos_ids = limits.eos_ids;
  OUTRIDER_RETURN_IF_ERROR(
      AtField("cache_salt", CheckCacheSalt(proto.cache_salt())));
  request.cache_salt = proto.cache_salt();

  OUTRIDER_ASSIGN_OR_RETURN(
      request.delivered, AtField("delivered", ParseDelivered(proto, limits)));
  const size_t length = request.prompt.size() + request.delivered.size();
  // What began where there is more memory.
  if (length > static_cast<size_t>(limits.longest_text) &&
      length <= static_cast<size_t>(limits.context_length)) {
    return OutgrownError(static_cast<int>(length), limits.longest_text);
  }
  if (length > static_cast<size_t>(request.max_length)) {
    return AtField(
        "delivered",
        absl::InvalidArgumentError(absl::StrCat(
            request.delivered.size(),
            " delivered tokens are more than this request can have produced")));
  }
  request.seed = SeedOf(proto, request);
  return request;
}

}  // namespace outrider
