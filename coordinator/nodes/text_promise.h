// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_TEXT_PROMISE_H_
#define OUTRIDER_COORDINATOR_NODES_TEXT_PROMISE_H_

#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/wire/model_identity.h"
#include "core/wire/node_calls.h"

namespace outrider {

// What is promised of a session's text: at temperature 0 and under kCoupled
// that it is the same one whoever continues it.
inline Sameness PromiseOf(const SamplingParams& sampling, RuleKind rule) {
  return IsGreedy(sampling) || rule == RuleKind::kCoupled ? Sameness::kBits
                                                          : Sameness::kLaw;
}
inline Sameness PromiseOf(const VerifyCall& call) {
  return PromiseOf(call.sampling, call.rule);
}

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_TEXT_PROMISE_H_
