// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_NO_MODEL_H_
#define OUTRIDER_CORE_MODEL_NO_MODEL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "core/model/causal_lm.h"

namespace outrider {

// Stands in a model's place where a drafter works from the text alone: takes
// any tokens, computes nothing, and has no rows to give. What its blocks hold
// is the session's text itself, which its log has.
class NoModel final : public CausalLm {
 public:
  explicit NoModel(ModelInfo info) : info_(std::move(info)) {
    info_.kv_block_bytes = kBytesPerToken * kKvBlockLength;
    info_.blocks_are_text = true;
  }

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override { return int64_t{1} << 30; }
  absl::Status AllocateKvBlocks(int /*num_blocks*/) override {
    return absl::OkStatus();
  }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    PassResults results;
    for (const Extension& extension : batch) {
      if (extension.num_rows == 0) {
        results.emplace_back(LogitRows());
      } else {
        results.emplace_back(absl::InvalidArgumentError("there is no model"));
      }
    }
    return std::make_unique<PassThatRan>(std::move(results));
  }

 private:
  static constexpr int64_t kBytesPerToken = 12;  // an id and a hash

  ModelInfo info_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_NO_MODEL_H_
