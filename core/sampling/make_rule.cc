// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/make_rule.h"

#include "core/base/check.h"
#include "core/sampling/block_verification.h"
#include "core/sampling/coupled.h"
#include "core/sampling/rejection.h"

namespace outrider {

std::unique_ptr<const AcceptanceRule> MakeRule(RuleKind kind,
                                               double lossy_lenience) {
  OUTRIDER_CHECK(kind == RuleKind::kRejection || lossy_lenience == 1);
  switch (kind) {
    case RuleKind::kRejection:
      return std::make_unique<RejectionRule>(lossy_lenience);
    case RuleKind::kCoupled:
      return std::make_unique<CoupledRule>();
    case RuleKind::kBlock:
      return std::make_unique<BlockRule>();
  }
  OUTRIDER_CHECK(false) << "no rule of this kind";
  return nullptr;
}

}  // namespace outrider
