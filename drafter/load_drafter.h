// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_LOAD_DRAFTER_H_
#define OUTRIDER_DRAFTER_LOAD_DRAFTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/drafting/draft_strategy.h"
#include "core/node/load_model.h"

namespace outrider {

// What drafts, by the name that the drafter's description has: a small model,
// or n-grams, which need the tokenizer alone. INVALID_ARGUMENT for other names;
// otherwise what loading the model says.
absl::StatusOr<LoadedModel> LoadDrafter(const std::string& strategy,
                                        const NodeFlags& flags,
                                        const WeightsLoader& load_weights);
std::unique_ptr<DraftStrategy> MakeStrategy(const NodeDescription& description);

// INVALID_ARGUMENT where flags do not go with the strategy.
absl::Status CheckDrafterFlags(const std::string& strategy,
                               const NodeFlags& flags);

// --strategy, and what a simulated drafter guesses right.
void AddDrafterFlags(CLI::App& app, NodeFlags& flags, std::string& strategy);

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_LOAD_DRAFTER_H_
