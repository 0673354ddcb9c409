// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_DRAFT_OPTIONS_H_
#define OUTRIDER_CORE_SAMPLING_DRAFT_OPTIONS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/number_range.h"

namespace outrider {

inline constexpr int kDefaultSupportSize = 32;  // of a DraftRequest
inline constexpr int kMaxSupportSize = 1024;    // or the whole vocabulary
// What requests and flags may have.
inline constexpr NumberRange kSupportMasses = {
    .low = 0, .high = 1, .has_low = false};
inline constexpr NumberRange kMinDraftProbabilities = {
    .low = 0, .high = 1, .has_high = false};

// How a drafter cuts the rows that it draws from, and when it ends a draft
// early. None of it may look at the token drawn, or the output's law changes.
struct DraftOptions {
  int support_size = kDefaultSupportSize;  // N: most tokens of a row
  // A row has no more of the most probable tokens than have this mass.
  double support_mass = 1;
  // Ends a draft whose first choices are less probable together; 0 never does.
  // Nothing: where control chooses K, it chooses this too; else never.
  std::optional<double> min_draft_probability = {};
  bool round_weights = true;  // of the rows, to bfloat16, before sampling

  friend bool operator==(const DraftOptions&, const DraftOptions&) = default;
};

// What a generation drafts with where nobody says otherwise.
inline constexpr DraftOptions kGenerationDraftOptions = {
    .support_size = kMaxSupportSize, .support_mass = 0.98};

// INVALID_ARGUMENT names the field, the value and what would be right.
absl::Status Validate(const DraftOptions& options, int vocab_size);

// The same where each may be left to somebody else's default.
struct DraftOverrides {
  std::optional<int> support_size = {};
  std::optional<double> support_mass = {};
  std::optional<double> min_draft_probability = {};
  std::optional<bool> round_weights = {};

  friend bool operator==(const DraftOverrides&,
                         const DraftOverrides&) = default;
};

// `defaults`, but for what `overrides` has.
DraftOptions Apply(const DraftOverrides& overrides, DraftOptions defaults);

// The same for a generation over a vocabulary of this size, and validated. A
// support size of 0 by default means whole rows. Overrides that have one of
// size and mass mean that one alone. Whole rows are for reference: they are
// rounded only where the overrides say so.
absl::StatusOr<DraftOptions> Resolve(const DraftOverrides& overrides,
                                     DraftOptions defaults, int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_DRAFT_OPTIONS_H_
