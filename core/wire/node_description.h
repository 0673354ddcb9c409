// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_NODE_DESCRIPTION_H_
#define OUTRIDER_CORE_WIRE_NODE_DESCRIPTION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/token.h"
#include "core/model/causal_lm.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_activity.h"
#include "core/wire/node_calls.h"
#include "outrider/v1/types.pb.h"

namespace outrider {

// Sessions of one cache_salt share: NodeDescription::prefix_cache.
inline constexpr char kSharesBySalt[] = "salted";

// What a node says of itself (NodeDescription in the proto).
struct NodeDescription {
  std::string model_name = {};
  std::string weights_hash = {};
  std::string tokenizer_hash = {};
  int vocab_size = 0;
  std::vector<TokenId> eos_ids = {};
  int context_length = 0;
  std::string dtype = {};
  std::string device = {};
  int max_draft_tokens = 0;
  int protocol_version = kProtocolVersion;
  std::string build = {};
  std::vector<ReplyFormat> reply_formats = {};
  std::string draft_strategy = {};
  bool is_simulated = false;  // a timing model in place of weights
  std::vector<RuleKind> rules = {RuleKind::kRejection};
  std::string numerics = {};    // empty: unknown
  int64_t kv_cache_tokens = 0;  // over all sessions
  int64_t kv_cache_bytes = 0;   // that they take
  // "off", "salted" or "all"; empty: an older node, which has none.
  std::string prefix_cache = {};
  std::optional<NodeActivity> activity = {};
  int max_outcomes = 0;  // of drafts in flight that it drafts for; 0: it cannot

  ModelIdentity identity() const {
    return {.weights_hash = weights_hash, .dtype = dtype, .numerics = numerics};
  }

  bool operator==(const NodeDescription&) const = default;
};

v1::NodeDescription ToProto(const NodeDescription& node);
NodeDescription FromProto(const v1::NodeDescription& proto);

// Whether a coordinator of this protocol can work with the verifier, and
// whether the drafter fits it. FAILED_PRECONDITION says what differs and what
// to do about it.
absl::Status CheckVerifier(const NodeDescription& verifier);
absl::Status CheckPair(const NodeDescription& drafter,
                       const NodeDescription& verifier);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_NODE_DESCRIPTION_H_
