// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_SESSION_H_
#define OUTRIDER_COORDINATOR_ROUND_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/round/cache_mirror.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/token.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/draft.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_history.h"
#include "core/sampling/token_logprobs.h"
#include "core/session/cache_delta.h"
#include "core/session/token_log.h"
#include "core/wire/node_calls.h"

namespace outrider {

// One generation: the only authority on what is committed. Used by one
// coroutine at a time.
class Session {
 public:
  struct Options {
    SessionId id = SessionId::Random();
    std::vector<TokenId> prompt = {};
    std::vector<TokenId> delivered = {};  // of a stream that is being resumed
    SamplingParams sampling = {};
    RuleKind rule = RuleKind::kRejection;
    std::optional<LogprobsOptions> logprobs = {};  // empty: not asked for
    uint64_t seed = 0;
    int max_length = 0;  // prompt and continuation together
    // What comes after one of them is of no use.
    std::vector<TokenId> end_tokens = {};
    std::string cache_salt = {};  // empty: its caches are shared with nobody
    std::unique_ptr<RandomSource> random = {};  // empty: Coins of the seed
    std::shared_ptr<Cancellation> cancellation = {};  // empty: one of its own
    std::string request_id = {};   // both go with every call, for the
    std::string traceparent = {};  // nodes' logs; empty: none
  };

  explicit Session(Options options);

  const SessionId& id() const { return options_.id; }
  // The number of committed tokens: prompt, delivered and generated ones.
  int length() const { return committed_.length(); }
  int prompt_length() const { return prompt_length_; }
  int max_length() const { return options_.max_length; }
  bool is_complete() const { return length() >= options_.max_length; }
  const TokenLog& committed() const { return committed_; }
  const SamplingParams& sampling() const { return options_.sampling; }
  const std::optional<LogprobsOptions>& logprobs() const {
    return options_.logprobs;
  }
  RuleKind rule() const { return options_.rule; }
  uint64_t seed() const { return options_.seed; }
  const std::vector<TokenId>& end_tokens() const { return options_.end_tokens; }
  LogIds log_ids() const;
  RandomSource& coins() { return *options_.random; }

  CacheMirror& drafter_cache() { return drafter_; }
  CacheMirror& verifier_cache() { return verifier_; }
  Cancellation& cancellation() { return *options_.cancellation; }

  // The most drafts that can still be used: a round commits one token more
  // than it accepts.
  int MaxDraftLength() const;

  // What penalties see after the committed tokens.
  TokenHistory History() const {
    return {.committed = committed_.tokens(), .prompt_length = prompt_length_};
  }

  // A header with a step of its own, and with the `num_steps` - 1 after it, for
  // the node behind this mirror.
  RequestHeader NextHeader(const CacheMirror& cache, int num_steps = 1);

  // Names session, life and step of an advisory call, without a delta;
  // `is_over`: nobody comes back for the text.
  RequestHeader AdvisoryHeader(const CacheMirror& cache, bool is_over = false);

  // Ends a round: the accepted drafts and the next token become committed, and
  // what the verifier went on with; both mirrors know how far their caches
  // agree.
  void Commit(const Draft& draft, const Verdict& verdict,
              absl::Span<const TokenId> more = {});

 private:
  Options options_;
  const int prompt_length_;
  TokenLog committed_;
  CacheMirror drafter_;
  CacheMirror verifier_;
  uint64_t next_step_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_SESSION_H_
