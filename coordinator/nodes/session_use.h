// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_USE_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_USE_H_

#include <optional>

#include "core/sampling/rule_kind.h"
#include "core/wire/node_calls.h"
#include "core/wire/node_description.h"

namespace outrider {

// What a request asks of its verifier, beside the model; empty: any will do.
struct VerifierNeeds {
  std::optional<RuleKind> rule = {};
  std::optional<ReplyFormat> reply_format = {};
};

bool Serves(const NodeDescription& node, const VerifierNeeds& needs);

// What a session uses of its verifiers, beside their model.
struct SessionUse {
  // How many a round may have; another node may take fewer.
  int max_draft_tokens = 0;
  bool is_resumed = false;  // it began elsewhere, and is no newcomer here
  ReplyFormat reply_format = ReplyFormat::kFull;
  RuleKind rule = RuleKind::kRejection;
};

// Whether `node` can go on with a session that one like `own` has begun, as far
// as that does not depend on how long its text has become: the weights aside,
// each may be another build, with other flags.
//
// Which tokens end a text by their descriptions does not matter, and differs
// between builds. A request takes that list once, where it is read; from then
// on the coordinator ends the text by it, and tells verifiers of it in each
// call that depends on it. Only a stream that is resumed takes the list anew,
// for what is to come: where a delivered token is an end by it, it ends there.
bool CanServe(const NodeDescription& node, const NodeDescription& own,
              const SessionUse& use);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_USE_H_
