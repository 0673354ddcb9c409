// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_STRATEGY_FACTORY_H_
#define OUTRIDER_DRAFTER_STRATEGY_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/drafting/draft_strategy.h"
#include "core/node/node_flags.h"
#include "core/wire/node_description.h"

namespace outrider {

struct StrategyAndDescription {
  std::unique_ptr<DraftStrategy> strategy;
  NodeDescription description;
};

// "model" or "ngram", as the flags say; a simulated model drafts like a real
// one. INVALID_ARGUMENT for other names; otherwise what loading the model says.
absl::StatusOr<StrategyAndDescription> MakeStrategy(const std::string& name,
                                                    const NodeFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_STRATEGY_FACTORY_H_
