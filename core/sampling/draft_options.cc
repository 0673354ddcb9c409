// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {

absl::Status Validate(const DraftOptions& options, int vocab_size) {
  const int size = options.support_size;
  if (size != vocab_size && (size < 1 || size > kMaxSupportSize)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "draft_options.support_size must be between 1 and ", kMaxSupportSize,
        ", or ", vocab_size, " for whole rows, not ", size));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckNumber("draft_options.support_mass",
                                       options.support_mass, kSupportMasses));
  return CheckNumber("draft_options.min_draft_probability",
                     options.min_draft_probability.value_or(0),
                     kMinDraftProbabilities, ", where 0 is off");
}

DraftOptions Apply(const DraftOverrides& overrides, DraftOptions defaults) {
  return {
      .support_size = overrides.support_size.value_or(defaults.support_size),
      .support_mass = overrides.support_mass.value_or(defaults.support_mass),
      .min_draft_probability = overrides.min_draft_probability.has_value()
                                   ? overrides.min_draft_probability
                                   : defaults.min_draft_probability,
      .round_weights =
          overrides.round_weights.value_or(defaults.round_weights)};
}

absl::StatusOr<DraftOptions> Resolve(const DraftOverrides& overrides,
                                     DraftOptions defaults, int vocab_size) {
  const bool has_size = overrides.support_size.has_value();
  const bool has_mass = overrides.support_mass.has_value();
  if (has_mass && !has_size) defaults.support_size = kMaxSupportSize;
  if ((has_size && !has_mass) || defaults.support_size == 0) {
    defaults.support_mass = 1;
  }
  defaults.support_size = defaults.support_size == 0
                              ? vocab_size
                              : std::min(defaults.support_size, vocab_size);
  DraftOptions options = Apply(overrides, defaults);
  const bool is_whole =
      options.support_mass == 1 && options.support_size == vocab_size;
  options.round_weights = overrides.round_weights.value_or(!is_whole);
  OUTRIDER_RETURN_IF_ERROR(Validate(options, vocab_size));
  return options;
}

}  // namespace outrider
