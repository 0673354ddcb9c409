// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_RULE_KIND_H_
#define OUTRIDER_CORE_SAMPLING_RULE_KIND_H_

namespace outrider {

// Names the rule by which a session's drafts are judged; all its parties must
// know, as coins are flipped in different places. At temperature 0 all are
// greedy.
enum class RuleKind {
  kRejection,  // RejectionRule
  kCoupled,    // CoupledRule
  kBlock,      // BlockRule
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_RULE_KIND_H_
