// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_REQUEST_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/control/draft_length_control.h"
#include "coordinator/nodes/session_use.h"
#include "coordinator/pool/node_pool.h"
#include "core/base/token.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_logprobs.h"
#include "core/tokenizer/tokenizer.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_description.h"
#include "core/wire/schedule.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// A Generate request that was found good, in domain terms.
struct GenerationRequest {
  std::vector<TokenId> prompt = {};
  std::vector<TokenId> delivered = {};
  SamplingParams sampling = {};
  std::optional<LogprobsOptions> logprobs = {};  // empty: not asked for
  RuleKind rule = RuleKind::kRejection;
  uint64_t seed = 0;
  int max_length = 0;  // prompt and continuation together
  std::vector<std::string> stop_strings = {};
  std::vector<TokenId> eos_ids = {};  // empty with ignore_eos
  std::vector<TokenId> stop_token_ids = {};
  int num_speculative_tokens = 0;  // the most, where they are chosen by round
  DraftLengthMode draft_length_mode = DraftLengthMode::kFixed;
  Schedule schedule = Schedule::kSequential;
  DraftOptions draft_options = {};
  bool prompt_lookup = false;
  ReplyFormat reply_format = ReplyFormat::kFull;
  std::string cache_salt = {};
};

// Whether it goes on with a stream that has delivered something.
bool IsResume(const v1::GenerateRequest& proto);
// Which model a resume asks for; nothing where the request names none.
std::optional<WantedModel> WantedModelOf(const v1::GenerateRequest& proto);

// What its verifier has to serve: any other one refuses it. Nothing of what is
// wrong everywhere. `default_format` is the coordinator's own, if it has one.
VerifierNeeds NeedsOf(const v1::GenerateRequest& proto,
                      const std::optional<ReplyFormat>& default_format);

// What bounds a request here.
struct GenerationLimits {
  const Tokenizer* tokenizer = nullptr;  // null: token prompts only
  int vocab_size = 0;
  // These are of the largest verifier of the model, each by itself: the longest
  // text that one has room for is within its context.
  int context_length = 0;
  int longest_text = 0;
  // This is what the model's largest verifier and the drafter take, while the
  // verifier of the moment may take fewer.
  int max_draft_tokens = 0;
  int most_draft_tokens = 0;     // of any nodes: more is refused
  int default_draft_tokens = 0;  // where a fixed number is wanted
  DraftLengthMode default_draft_length_mode = DraftLengthMode::kFixed;
  Schedule default_schedule = Schedule::kSequential;
  bool default_prompt_lookup = false;
  // A support_size of 0: whole rows.
  DraftOptions default_draft_options = kGenerationDraftOptions;
  std::vector<TokenId> eos_ids = {};
  std::vector<ReplyFormat> reply_formats = {};  // that the verifier serves
  std::vector<RuleKind> rules = {};             // likewise
  std::optional<ReplyFormat> default_reply_format = {};  // empty: by the rule
};

// Tokenises and validates. INVALID_ARGUMENT names the field, the offending
// value, and what would be right; FAILED_PRECONDITION a reply format or a rule
// that the verifier does not serve.
absl::StatusOr<GenerationRequest> ParseRequest(const v1::GenerateRequest& proto,
                                               const GenerationLimits& limits);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_REQUEST_H_
