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
#include "core/sampling/draft_options.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/target_row.h"
#include "core/sampling/token_logprobs.h"
#include "core/session/cache_delta.h"
#include "core/wire/call_limits.h"
#include "core/wire/model_identity.h"

namespace outrider {

// The messages between coordinator and nodes in domain terms; the protos say
// what each field means (proto/outrider/v1). The cores of all three processes
// speak these, whether gRPC or a test carries them.

// What logs call a request; goes as metadata. Empty: none.
struct LogIds {
  absl::string_view request_id = {};
  absl::string_view traceparent = {};
};

struct DraftCall {
  RequestHeader header = {};
  int max_draft_tokens = 0;
  DraftOptions options = {};
  SamplingParams sampling = {};
  uint64_t seed = 0;
  int prompt_length = 0;
  RuleKind rule = RuleKind::kRejection;
  // Drafts of the text that is being verified: after it nothing is drafted, but
  // after what its verification may come to, with the steps of the header up to
  // header.step + max_outcomes - 1. None where max_outcomes is 0.
  std::vector<TokenId> in_flight_tokens = {};
  int max_outcomes = 0;
  double acceptance = 0;  // of each of these, once those before it stand
  LogIds log_ids = {};    // the session's own strings
};

// What the verification of drafts in flight may come to, and a draft for it,
// which begins after next_token.
struct OutcomeDraft {
  int num_accepted = 0;
  TokenId next_token = 0;  // the replacement, or where all stand the bonus
  Draft draft = {};
};

struct DraftReply {
  ReplyHeader header = {};
  std::variant<Draft, Miss> outcome = {};
  std::vector<OutcomeDraft> outcomes = {};  // i was drawn with header.step + i
  std::optional<ModelIdentity> model = {};  // of the node, where it says so
  int64_t wire_bytes = 0;  // both directions; set by the transport
  int64_t sent_bytes = 0;  // the request's share of them
};

// kFullBFloat16: kFull with every logit rounded to bfloat16. (reply_codec.h)
enum class ReplyFormat { kFull, kFullBFloat16, kSparse, kTokens };
inline constexpr ReplyFormat kReplyFormats[] = {
    ReplyFormat::kFull, ReplyFormat::kFullBFloat16, ReplyFormat::kSparse,
    ReplyFormat::kTokens};

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
  std::optional<LogprobsOptions> logprobs = {};  // not for the rows themselves
  // kTokens without drafts: tokens that the verifier may go on with by itself,
  // but after none of `end_tokens`.
  int max_more_tokens = 0;
  std::vector<TokenId> end_tokens = {};
  LogIds log_ids = {};  // the session's own strings
};

struct VerifyReply {
  ReplyHeader header = {};
  // One kind for each format, in the formats' order; or a miss.
  std::variant<LogitRows, std::vector<TargetRow>, Verdict, Miss> outcome = {};
  // Each number of the rows is one of bfloat16's.
  bool is_bfloat16 = false;
  // Where asked for, of each row that may give a token. kSparse: for the
  // support of the draft's row and the tail token, where there is one; kTokens:
  // for the token that the row gave, those of more_tokens last.
  std::vector<RowScores> logprobs = {};
  std::vector<TokenId> more_tokens = {};    // after the verdict's
  std::optional<ModelIdentity> model = {};  // of the node, where it says so
  int64_t wire_bytes = 0;  // both directions; set by the transport
  int64_t sent_bytes = 0;  // the request's share of them
  // How often the call was refused, failed or moved before this answer: what it
  // took says nothing of the network then. Set by who sends it again.
  int num_retries = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_NODE_CALLS_H_
