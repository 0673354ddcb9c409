// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_
#define OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/sampling/draft.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"

namespace outrider {

// What a strategy may look at. New needs extend this struct.
struct DraftContext {
  // All of them, in order. They move while a draft is under way: whoever runs
  // it sets this before each Take, and where penalties look at them
  // (LooksAtText) before each question, too.
  absl::Span<const TokenId> committed = {};
  // What is taken to come after those; the draft begins after it. Only a
  // strategy with a model is asked for such drafts.
  absl::Span<const TokenId> guessed = {};
  int prompt_length = 0;     // of `committed`; what follows was generated
  int max_draft_tokens = 0;  // K; 0 only fills the cache
  DraftOptions options = {};
  SamplingParams sampling = {};
  // kCoupled: draw with DrawCoupled and return the token itself as its row,
  // for with the noise given it is certain.
  RuleKind rule = RuleKind::kRejection;
  uint64_t step = 0;               // names the DRAFT coins
  uint64_t seed = 0;               // of the coins, for who may guess a draw
  bool model_answers = true;       // questions about rows
  RandomSource* random = nullptr;  // never null
};

// One draft under way, token by token: between two of them the model serves
// others.
class DraftInProgress {
 public:
  virtual ~DraftInProgress() = default;

  // Rows of the model's that each Take needs: 0 or 1.
  virtual int num_rows() const = 0;
  // What may be answered in place of the next one; by itself the whole row.
  // Valid until the next Take.
  virtual RowQuestion question() const { return {}; }
  // `rows`: of the position after the committed tokens and the draft so far.
  // True: there is a token more, and it is to be run for the next row. False:
  // the draft is complete.
  virtual absl::StatusOr<bool> Take(const LogitRows& rows) = 0;

  // What is drafted so far.
  const Draft& draft() const { return draft_; }
  // Hands it over; the last call.
  Draft TakeDraft() { return std::move(draft_); }

 protected:
  Draft draft_;
};

// One way to guess the next tokens. To stay exact, a strategy
// - draws each token from exactly the row it returns for it (Draft), and
// - decides whether a position is drafted without looking at the token drawn.
// Fewer tokens than asked for, or none, is a valid answer. Thread-safe; what it
// begins is not.
class DraftStrategy {
 public:
  virtual ~DraftStrategy() = default;

  // Drafts what follows the first `start` tokens; they are in `context` from
  // the first Take on. The context must outlive the draft.
  virtual std::unique_ptr<DraftInProgress> Begin(const DraftContext& context,
                                                 uint64_t start) const = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_
