// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_NODE_CALLS_H_
#define OUTRIDER_CORE_WIRE_NODE_CALLS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/draft.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/target_row.h"
#include "core/sampling/token_logprobs.h"
#include "core/session/cache_delta.h"

namespace outrider {

// The messages between coordinator and nodes in domain terms; the protos say
// what each field means (proto/outrider/v1). The cores of all three processes
// speak these, whether gRPC or a test carries them.

inline constexpr int kProtocolVersion = 1;
inline constexpr int kDefaultSupportSize = 32;       // of a DraftRequest
inline constexpr double kDefaultSupportMass = 0.98;  // of a GenerateRequest
inline constexpr int kMaxSupportSize = 1024;         // or the whole vocabulary
inline constexpr int kDefaultMaxDraftTokens = 16;

// What logs call a request; goes as metadata. Empty: none.
struct LogIds {
  absl::string_view request_id = {};
  absl::string_view traceparent = {};
};

struct DraftCall {
  RequestHeader header = {};
  int max_draft_tokens = 0;
  int support_size = kDefaultSupportSize;
  double support_mass = 1;
  SamplingParams sampling = {};
  uint64_t seed = 0;
  int prompt_length = 0;
  double min_draft_probability = 0;
  bool round_weights = true;  // to bfloat16, before sampling
  RuleKind rule = RuleKind::kRejection;
  LogIds log_ids = {};  // the session's own strings
};

struct DraftReply {
  ReplyHeader header = {};
  std::variant<Draft, Miss> outcome = {};
  int64_t wire_bytes = 0;  // both directions; set by the transport
  int64_t sent_bytes = 0;  // the request's share of them
};

// kFullBFloat16: kFull with every logit rounded to bfloat16.
enum class ReplyFormat { kFull, kFullBFloat16, kSparse, kTokens };

// The caller gets the rows themselves, and processes and judges them.
inline bool IsFull(ReplyFormat format) {
  return format == ReplyFormat::kFull || format == ReplyFormat::kFullBFloat16;
}

struct VerifyCall {
  RequestHeader header = {};
  std::vector<TokenId> draft_tokens = {};
  ReplyFormat reply_format = ReplyFormat::kFull;
  // kSparse: the support of each draft's row, ascending.
  std::vector<std::vector<TokenId>> supports = {};
  // kTokens: the rows that the drafts were drawn from; empty at temperature 0
  // and under kCoupled, where they do not matter.
  std::vector<Distribution> draft_rows = {};
  SamplingParams sampling = {};
  uint64_t seed = 0;
  int prompt_length = 0;
  RuleKind rule = RuleKind::kRejection;          // kCoupled excludes kSparse
  std::optional<LogprobsOptions> logprobs = {};  // not where IsFull
  LogIds log_ids = {};                           // the session's own strings
};

struct VerifyReply {
  ReplyHeader header = {};
  // IsFull, kSparse, kTokens; or a cache that does not fit.
  std::variant<LogitRows, std::vector<TargetRow>, Verdict, Miss> outcome = {};
  // On a verifier: each number of the rows is one of bfloat16's.
  bool is_bfloat16 = false;
  // Where asked for, of each row that may give a token. kSparse: for the
  // support of the draft's row and the tail token, where there is one; kTokens:
  // for the token that the row gave.
  std::vector<RowScores> logprobs = {};
  int64_t wire_bytes = 0;  // both directions; set by the transport
  int64_t sent_bytes = 0;  // the request's share of them
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_NODE_CALLS_H_
