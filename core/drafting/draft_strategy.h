// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_
#define OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/base/token.h"
#include "core/sampling/draft.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"

namespace outrider {

// What a strategy may look at. New needs extend this struct.
struct DraftContext {
  SessionId session = {};
  absl::Span<const TokenId> committed = {};  // all of them, in order
  int prompt_length = 0;     // of `committed`; what follows was generated
  int keep_length = 0;       // what stays of the session's cache; the rest of
                             // `committed`, at least one token, goes behind it
  int max_draft_tokens = 0;  // K; 0 only fills the cache
  DraftOptions options = {};
  SamplingParams sampling = {};
  // kCoupled: draw with DrawCoupled and return the token itself as its row,
  // for with the noise given it is certain.
  RuleKind rule = RuleKind::kRejection;
  uint64_t step = 0;               // names the DRAFT coins
  RandomSource* random = nullptr;  // never null
};

// A draft, and how many of its tokens the strategy's cache holds by now.
struct Proposal {
  Draft draft = {};
  int num_cached_drafts = 0;
};

// One way to guess the next tokens. To stay exact, a strategy
// - draws each token from exactly the row it returns for it (Draft), and
// - decides whether a position is drafted without looking at the token drawn.
// Fewer tokens than asked for, or none, is a valid answer. Member functions
// are not called concurrently.
class DraftStrategy {
 public:
  virtual ~DraftStrategy() = default;

  virtual absl::StatusOr<Proposal> Propose(const DraftContext& context) = 0;

  // The session's cache is no longer needed; unknown sessions are fine.
  virtual void Release(const SessionId& session) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_DRAFTING_DRAFT_STRATEGY_H_
