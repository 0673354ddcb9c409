// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_PENDING_PASS_H_
#define OUTRIDER_CORE_MODEL_PENDING_PASS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/logit_rows.h"

namespace outrider {

// What a model answers to the extensions of a pass, one for each.
using PassResults = std::vector<absl::StatusOr<LogitRows>>;

// A pass that a model was given (CausalLm::Launch).
class PendingPass {
 public:
  virtual ~PendingPass() = default;

  // Awaits it; called once.
  virtual PassResults Finish() = 0;
};

// A pass whose end its launch has awaited.
class PassThatRan final : public PendingPass {
 public:
  explicit PassThatRan(PassResults results) : results_(std::move(results)) {}

  PassResults Finish() override { return std::move(results_); }

 private:
  PassResults results_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_PENDING_PASS_H_
