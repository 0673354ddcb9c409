// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATION_H_
#define OUTRIDER_CLIENT_GENERATION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/token.h"
#include "core/wire/node_calls.h"

// A generation as the caller of a coordinator sees it. A namespace of its own,
// as the coordinator has words of the same names for its side.
namespace outrider::client {

// Added to the logit of one token.
struct LogitBias {
  TokenId id = 0;
  double bias = 0;
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

// Of which of the target's rows log-probabilities are.
enum class LogprobsMode { kRaw, kProcessed };

// How drafts are judged.
enum class AcceptanceRule { kRejection, kGreedy, kCoupled };

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
  std::optional<uint32_t> num_speculative_tokens = {};
  bool ignore_eos = false;
  std::optional<uint32_t> draft_support_size = {};
  std::optional<double> min_draft_probability = {};
  std::optional<ReplyFormat> reply_format = {};
  std::optional<AcceptanceRule> acceptance_rule = {};
  std::optional<double> lossy_lenience = {};
  // The reply goes on behind what a broken stream delivered, with its seed.
  std::optional<TokenSeq> delivered = {};
};

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
};

struct GenerationStart {
  uint64_t seed = 0;
  int prompt_length = 0;
  int num_speculative_tokens = 0;  // K
  bool is_lossy = false;
};

enum class FinishReason { kUnknown, kEos, kStop, kLength };

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
  std::optional<GenerationRound> round = {};
  std::optional<GenerationFinish> finish = {};  // in the last one only
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATION_H_
