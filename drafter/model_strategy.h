// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_DRAFTER_MODEL_STRATEGY_H_
#define OUTRIDER_DRAFTER_MODEL_STRATEGY_H_

#include <memory>

#include "core/drafting/draft_strategy.h"
#include "core/model/causal_lm.h"

namespace outrider {

// Drafts with a small model: K passes of one row, each token drawn from its
// processed row cut to the top N; fewer than K where the model is unsure.
// Confined to the model's thread.
class ModelStrategy final : public DraftStrategy {
 public:
  // `vocab_size` is the tokenizer's: what the head is padded with is cut off.
  ModelStrategy(std::unique_ptr<CausalLm> model, int vocab_size);

  absl::StatusOr<Proposal> Propose(const DraftContext& context) override;
  void Release(const SessionId& session) override;

 private:
  const std::unique_ptr<CausalLm> model_;
  const int vocab_size_;
};

}  // namespace outrider

#endif  // OUTRIDER_DRAFTER_MODEL_STRATEGY_H_
