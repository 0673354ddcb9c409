// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_LOST_LM_H_
#define OUTRIDER_CORE_TESTING_LOST_LM_H_

#include <memory>
#include <vector>

#include "core/testing/table_lm.h"

namespace outrider::testing {

// A model whose device is lost at the first pass.
class LostLm final : public CausalLm {
 public:
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    return std::make_unique<PassThatRan>(PassResults(
        batch.size(), absl::UnavailableError("the device is gone")));
  }

 private:
  const TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_LOST_LM_H_
