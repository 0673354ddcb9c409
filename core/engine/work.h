// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_WORK_H_
#define OUTRIDER_CORE_ENGINE_WORK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/session/cache_delta.h"
#include "core/session/node_session.h"

namespace outrider {

// The next token of one of the session's branches, whose row is wanted.
struct BranchWant {
  int branch = 0;
  TokenId token = 0;
};

// What one piece of work wants next of a pass.
struct Want {
  // What goes after the session's cached tokens, at least one; valid until the
  // next Take. Where they are many they are run in chunks.
  absl::Span<const TokenId> tokens = {};
  int num_rows = 0;  // logits wanted, of the last tokens
  // As far as is known, nothing more is wanted once these rows are taken. So it
  // is, too, where the model went on with all of max_drawn.
  bool is_last = false;
  // It is in the pass after the next one as well, and need not end with others:
  // whoever is late for a pass joins it in that one.
  bool stays = false;
  // Stand in place of those tokens: one of each branch, in the order of
  // branches.
  std::vector<BranchWant> branches = {};
  // Branches that are made before that, from number 0 on. Where there is no
  // room for all, what the last ones want falls away; where there is none, the
  // work is done, and its reply is what it has been so far.
  std::vector<Fork> forks = {};
  // What is asked of the rows, one for each, those of branches in their order;
  // empty: the rows themselves. Valid until the next Take.
  absl::Span<const RowQuestion> questions = {};
  // How many tokens the model may go on with, drawn as the last question says,
  // where it can: their rows come after those wanted (LogitRows::drawn).
  int max_drawn = 0;
  // The session's text is cut to this before: what the model drew after it is
  // not what comes there.
  std::optional<int> keep_length = {};
};

// How a piece of work ended.
struct Ending {
  absl::Status status = absl::OkStatus();
  std::optional<Miss> miss =
      {};                      // where the status is OK: the cache did not fit
  double compute_seconds = 0;  // in passes and in Take, waiting left out
  double own_seconds = 0;      // of those: its rows' share of the passes
  double queue_seconds = 0;    // what it waited beside them
  // The node may be sent the next moved stream in so long (ReprefillBudget);
  // negative: since so long.
  double next_reprefill_in = 0;
};

// One call at a node, a Draft or a Verify, as the scheduler sees it: it says
// what it wants next of a pass and takes its rows, until it is done. Member
// functions are called one at a time, on any of the node's threads.
class Work {
 public:
  struct Request {
    RequestHeader header = {};
    uint64_t content_digest = 0;  // identifies the call's bytes
    int num_draft_tokens = 0;     // that its round caches besides the delta
    // Nobody waits for the reply any more. Empty: somebody always does.
    std::function<bool()> is_cancelled = {};
    // Is in passes what room others leave, and ends where a newer step comes.
    bool is_ahead = false;
    // A stream that has begun is silent until this is done.
    bool holds_up_stream = false;
  };

  explicit Work(Request request) : request_(std::move(request)) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const Request& request() const { return request_; }

  // The header was admitted: the session, cut to keep_length, is this work's
  // own up to its last Take or its Finish. It may have the first tokens of the
  // delta already; those that it wants begin after keep_length all the same.
  virtual Want Begin(const NodeSession& session) = 0;
  // The rows of what it wanted, whose tokens are cached now: of the session's
  // text, or one piece for each branch that there was room for. What it wants
  // next, or nothing where it is done. Runs beside passes of others. An error
  // ends the work, and the session is forgotten.
  virtual absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) = 0;
  // What it leaves cached may be wrong, though it ends well: nobody shares it.
  virtual bool is_doubtful() const { return false; }
  // The last call: answers whoever waits.
  virtual void Finish(const Ending& ending) = 0;

 private:
  const Request request_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_WORK_H_
