// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_GENERATION_UPDATE_H_
#define OUTRIDER_CORE_WIRE_GENERATION_UPDATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/token.h"
#include "core/sampling/token_logprobs.h"
#include "core/wire/finish_reason.h"
#include "core/wire/model_identity.h"
#include "core/wire/round_stats.h"

// What a coordinator tells the caller of a generation, in the terms that both
// sides use; proto/outrider/v1/generation.proto says what each field means.
namespace outrider {

// Where a committed token comes from.
enum class TokenOrigin {
  kUnknown,  // a newer coordinator may have more of them
  kDraft,
  kReplacement,
  kBonus,
};

// One token of the continuation, with the text that became certain with it.
struct GeneratedToken {
  TokenId id = 0;
  std::string text = {};
  TokenOrigin origin = TokenOrigin::kUnknown;
  // Where the request asked for them; the most probable tokens at its place.
  std::optional<double> logprob = {};
  std::vector<TokenLogprob> top_logprobs = {};
};

struct GenerationStart {
  uint64_t seed = 0;
  int prompt_length = 0;
  int num_speculative_tokens = 0;  // K; the most where it is chosen by round
  bool is_k_auto = false;          // K is chosen by round
  bool is_lossy = false;
  ModelIdentity model = {};     // what a resume has to name again
  std::string cache_salt = {};  // what a resume should name again
  // These are of the prompt, from requests before. Empty: nobody was asked.
  std::optional<int> num_cached_prompt_tokens = {};
};

struct GenerationFinish {
  FinishReason reason = FinishReason::kUnknown;
  std::string trailing_text = {};
  int num_draft_failures = 0;
  int num_misses = 0;
};

// One message of the stream, in the order of its fields.
struct GenerationUpdate {
  std::optional<GenerationStart> start = {};  // in the first one only
  // Index of tokens[0] in the continuation, where there are tokens.
  int first_index = 0;
  std::vector<GeneratedToken> tokens = {};
  // What callers are not told of a round is 0 where it comes from the wire.
  std::optional<RoundStats> round = {};
  std::optional<GenerationFinish> finish = {};  // in the last one only
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_GENERATION_UPDATE_H_
