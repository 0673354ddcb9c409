// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATION_H_
#define OUTRIDER_CLIENT_GENERATION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/token.h"
#include "core/wire/model_identity.h"

// What a generation's caller is told. A namespace of its own, as the
// coordinator has words of the same names.
namespace outrider::client {

enum class TokenOrigin { kUnknown, kDraft, kReplacement, kBonus };

// Natural logarithm of a probability.
struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
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

// What one round did and where its time went.
struct GenerationRound {
  int num_drafted = 0;
  int num_accepted = 0;
  std::chrono::nanoseconds draft_time = {};   // network included
  std::chrono::nanoseconds verify_time = {};  // network included
  std::chrono::nanoseconds draft_compute_time = {};
  std::chrono::nanoseconds verify_compute_time = {};
  std::chrono::nanoseconds round_time = {};
  uint64_t drafter_bytes = 0;  // protobuf, both directions
  uint64_t verifier_bytes = 0;
  int drafter_messages = 0;  // requests and replies
  int verifier_messages = 0;
  int num_looked_up = 0;  // of num_drafted: from the text, not the drafter
};

struct GenerationStart {
  uint64_t seed = 0;
  int prompt_length = 0;
  int num_speculative_tokens = 0;  // K
  bool is_lossy = false;
  ModelIdentity model = {};  // what a resume has to name again
};

enum class FinishReason { kUnknown, kEos, kStop, kLength };

struct GenerationFinish {
  FinishReason reason = FinishReason::kUnknown;
  std::string trailing_text = {};
  int num_draft_failures = 0;
  int num_misses = 0;
  int num_cached_prompt_tokens = 0;  // of the prompt, from requests before
};

// One message of the stream, in the order of its fields.
struct GenerationUpdate {
  std::optional<GenerationStart> start = {};  // in the first one only
  // Index of tokens[0] in the continuation, where there are tokens.
  int first_index = 0;
  std::vector<GeneratedToken> tokens = {};
  std::optional<GenerationRound> round = {};
  std::optional<GenerationFinish> finish = {};  // in the last one only
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATION_H_
