// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATION_REQUEST_H_
#define OUTRIDER_CLIENT_GENERATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/token.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_logprobs.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_calls.h"
#include "core/wire/schedule.h"

namespace outrider::client {

// What to continue, and how. Absent fields leave the choice to the coordinator;
// proto/outrider/v1/generation.proto has their ranges and defaults.
struct GenerationRequest {
  std::variant<std::string, TokenSeq> prompt = {};
  std::optional<double> temperature = {};
  std::optional<int> top_k = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<double> presence_penalty = {};
  std::optional<double> frequency_penalty = {};
  std::vector<LogitBias> logit_bias = {};
  std::optional<uint32_t> logprobs = {};  // alternatives; empty: none at all
  std::optional<LogprobsMode> logprobs_mode = {};
  std::optional<uint64_t> seed = {};
  std::optional<uint32_t> max_tokens = {};
  std::vector<std::string> stop_strings = {};
  TokenSeq stop_token_ids = {};
  std::optional<uint32_t> num_speculative_tokens = {};
  bool is_k_auto = false;  // the coordinator chooses them by round
  bool ignore_eos = false;
  DraftOverrides draft_options = {};
  std::optional<Schedule> schedule = {};
  std::optional<bool> prompt_lookup = {};
  std::optional<ReplyFormat> reply_format = {};
  std::optional<RuleKind> acceptance_rule = {};
  std::optional<double> lossy_lenience = {};
  std::string cache_salt = {};  // empty: shared with resumes alone
  // Tokens that an earlier, broken stream delivered: the reply goes on after
  // them. Needs that stream's seed and model.
  std::optional<TokenSeq> delivered = {};
  std::optional<ModelIdentity> model = {};
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATION_REQUEST_H_
