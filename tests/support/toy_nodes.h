// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_TOY_NODES_H_
#define OUTRIDER_TESTS_SUPPORT_TOY_NODES_H_

#include <memory>
#include <utility>

#include "core/drafting/draft_strategy.h"
#include "core/engine/batch_scheduler.h"
#include "core/model/no_model.h"
#include "core/testing/table_lm.h"
#include "drafter/draft_engine.h"
#include "drafter/model_strategy.h"
#include "tests/support/node_core.h"
#include "verifier/verify_engine.h"

namespace outrider::testing {

// More blocks would take the enumerations' time.
inline BatchScheduler::Options FewBlocks() {
  return {.sessions = {.num_blocks = 64}};
}

using DraftNode = NodeCore<DraftEngine>;
using VerifyNode = NodeCore<VerifyEngine>;

// Nodes over tables. The engine's vocabulary and context are the model's where
// the options leave them out.
inline std::unique_ptr<VerifyNode> MakeVerifyNode(
    TableLm::Options model, VerifyEngine::Options options = {},
    BatchScheduler::Options scheduling = FewBlocks()) {
  if (options.vocab_size == 0) options.vocab_size = model.vocab_size;
  options.context_length = model.context_length;
  return std::make_unique<VerifyNode>(
      std::make_unique<TableLm>(std::move(model)),
      std::make_unique<VerifyEngine>(std::move(options)), scheduling);
}
inline std::unique_ptr<DraftNode> MakeDraftNode(
    TableLm::Options model, DraftEngine::Options options = {},
    BatchScheduler::Options scheduling = FewBlocks()) {
  if (options.vocab_size == 0) options.vocab_size = model.vocab_size;
  options.context_length = model.context_length;
  options.max_outcomes = kMaxOutcomes;
  auto strategy = std::make_unique<ModelStrategy>(options.vocab_size);
  return std::make_unique<DraftNode>(
      std::make_unique<TableLm>(std::move(model)),
      std::make_unique<DraftEngine>(std::move(strategy), std::move(options)),
      scheduling);
}
// One that works from the text alone.
inline std::unique_ptr<DraftNode> MakeTextDraftNode(
    std::unique_ptr<DraftStrategy> strategy, DraftEngine::Options options) {
  return std::make_unique<DraftNode>(
      std::make_unique<NoModel>(ModelInfo{.vocab_size = options.vocab_size}),
      std::make_unique<DraftEngine>(std::move(strategy), std::move(options)),
      FewBlocks());
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_TOY_NODES_H_
