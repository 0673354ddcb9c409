// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_RULE_NAMES_H_
#define OUTRIDER_CORE_SAMPLING_RULE_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/sampling/rule_kind.h"

namespace outrider {

// What flags and tables call the rules.
absl::string_view NameOf(RuleKind rule);

// A name of what rejection is at temperature 0, which flags take too.
inline constexpr absl::string_view kGreedyRuleName = "greedy";

// All that --acceptance-rule takes, and what it stands for: greedy for
// rejection.
std::vector<std::string> RuleFlagNames();
std::optional<RuleKind> RuleOfName(absl::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_RULE_NAMES_H_
