// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_DRAFT_FLAGS_H_
#define OUTRIDER_CORE_SAMPLING_DRAFT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>

#include "core/sampling/draft_options.h"

namespace outrider {

// --min-draft-probability, --draft-support-mass and --draft-support-size, as
// all programs have them: of a server, whose defaults `options` has, and where
// a size of 0 means whole rows; and of a request, where the coordinator's hold
// for what is left out.
void AddDraftOptionFlags(CLI::App& app, DraftOptions& options);
void AddDraftOptionFlags(CLI::App& app, DraftOverrides& options);

// The first of them alone, for whoever has no other default.
void AddMinDraftProbabilityFlag(CLI::App& app,
                                std::optional<double>& probability);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_DRAFT_FLAGS_H_
