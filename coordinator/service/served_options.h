// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_SERVED_OPTIONS_H_
#define OUTRIDER_COORDINATOR_SERVICE_SERVED_OPTIONS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/service/generation_request.h"
#include "core/sampling/rule_kind.h"
#include "core/wire/node_calls.h"

namespace outrider {

// The options that not every verifier serves: the rule, and the format of
// replies. FAILED_PRECONDITION: the one that `limits` are of does not.

absl::Status CheckServed(RuleKind rule, const GenerationLimits& limits);

// The coordinator's own format, for the rules that it is for.
std::optional<ReplyFormat> DefaultFormat(const std::optional<ReplyFormat>& own,
                                         RuleKind rule);
// `named` by the request; else the coordinator's own, or else the thinnest.
absl::StatusOr<ReplyFormat> ChooseReplyFormat(
    const std::optional<ReplyFormat>& named, RuleKind rule,
    const GenerationLimits& limits);

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_SERVED_OPTIONS_H_
