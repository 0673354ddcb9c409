// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/stop_condition.h"

#include "absl/algorithm/container.h"
#include "core/base/mutant.h"

namespace outrider {

StopCondition::BlockEnd StopCondition::Find(absl::Span<const TokenId> block,
                                            int length_before) const {
  const int size = static_cast<int>(block.size());
  for (int i = 0; i < size; ++i) {
    // The token's own meaning first: an end-of-sequence token in the last
    // allowed place is an end, not a cut.
    if (i >= OUTRIDER_MUTANT(M14, 0, size - 1)) {
      if (absl::c_linear_search(options_.eos_ids, block[i])) {
        return {i + 1, FinishReason::kEos};
      }
      if (absl::c_linear_search(options_.stop_token_ids, block[i])) {
        return {i + 1, FinishReason::kStop};
      }
    }
    if (length_before + i + 1 >= options_.max_length) {
      return {i + 1, FinishReason::kLength};
    }
  }
  return {size, std::nullopt};
}

}  // namespace outrider
