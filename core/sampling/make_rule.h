// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_MAKE_RULE_H_
#define OUTRIDER_CORE_SAMPLING_MAKE_RULE_H_

#include <memory>

#include "core/sampling/acceptance_rule.h"
#include "core/sampling/rule_kind.h"

namespace outrider {

// The production rule of a kind. Only rejection knows a lenience below 1.
std::unique_ptr<const AcceptanceRule> MakeRule(RuleKind kind,
                                               double lossy_lenience);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_MAKE_RULE_H_
