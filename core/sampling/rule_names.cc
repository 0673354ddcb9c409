// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/rule_names.h"

#include <array>

namespace outrider {
namespace {

struct NamedRule {
  absl::string_view name;
  RuleKind rule;
};
constexpr std::array<NamedRule, 3> kRules = {{
    {"rejection", RuleKind::kRejection},
    {"block", RuleKind::kBlock},
    {"coupled", RuleKind::kCoupled},
}};

}  // namespace

absl::string_view NameOf(RuleKind rule) {
  for (const NamedRule& named : kRules) {
    if (named.rule == rule) return named.name;
  }
  return "unknown";
}

std::vector<std::string> RuleFlagNames() {
  std::vector<std::string> names = {std::string(kGreedyRuleName)};
  for (const NamedRule& named : kRules) names.emplace_back(named.name);
  return names;
}

std::optional<RuleKind> RuleOfName(absl::string_view name) {
  if (name == kGreedyRuleName) return RuleKind::kRejection;
  for (const NamedRule& named : kRules) {
    if (named.name == name) return named.rule;
  }
  return std::nullopt;
}

}  // namespace outrider
