// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_JOB_H_
#define OUTRIDER_CORE_ENGINE_JOB_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/engine/work.h"
#include "core/model/logit_rows.h"
#include "core/session/node_session.h"

namespace outrider {

// A piece of work on its way through the scheduler.
class Job {
 public:
  using Clock = NodeSession::Clock;

  Job(std::unique_ptr<Work> piece, Clock::time_point now)
      : work(std::move(piece)), submitted(now) {}

  // The work, which has a session, says what it wants first, takes its rows, or
  // answers whoever waits. All run outside of the scheduler and its locks,
  // beside passes: to take a whole row is to look at as many numbers as the
  // vocabulary has tokens. Only whether a device's answer decides is looked at
  // in the pass itself (TopQuestion::suffices), as the row is there no longer
  // than that. An exception is an error of this work's, as they change nothing
  // else.
  void Begin();
  void Take();
  void Finish();

  // Tokens that it still wants to run, and that are in no pass yet.
  int num_left() const {
    return static_cast<int>(want.branches.size() + want.tokens.size()) -
           num_run - num_in_passes;
  }
  // More than a round's tokens.
  bool is_long() const {
    return want.branches.empty() && num_left() > want.num_rows + kMaxCatchUp;
  }
  // What is long is run in chunks. So is an opening however short, as many may
  // come at once.
  bool is_prefill() const {
    return is_long() || (want.branches.empty() && is_opening && !had_chunks);
  }
  bool is_ahead() const { return work->request().is_ahead; }
  // Nobody waits for it any more.
  bool is_cancelled() const {
    const auto& has_gone = work->request().is_cancelled;
    return has_gone && has_gone();
  }
  // A stream that has begun is silent until it is done. Where it is a prefill
  // the stream comes from another node, or back to one that has forgotten it.
  bool holds_up_stream() const { return work->request().holds_up_stream; }
  // It was sent when this node had time for it (ReprefillBudget).
  bool is_moved() const { return work->request().header.is_moved; }
  // Another node had computed it, or was at it, or this one had forgotten it.
  bool is_reprefill() const {
    return is_opening && (holds_up_stream() || is_moved());
  }
  bool has_taken = false;  // rows: its text is computed
  // Its text is to end, as a stream that has begun waits for the room. What
  // passes have computed of it is right.
  bool gives_way() const {
    return session != nullptr && session->gives_way_to.has_value() &&
           !has_taken && failure.ok();
  }

  // Tokens besides those of its rows that running work may have: what a node
  // sat out, such as rounds without a draft.
  static constexpr int kMaxCatchUp = 16;

  const std::unique_ptr<Work> work;
  const Clock::time_point submitted;
  NodeSession* session = nullptr;  // once admitted, until it has ended
  Want want = {};
  int num_run = 0;        // of want.tokens, or cached before
  int num_in_passes = 0;  // of those after them; 0: it is in no pass
  // The job ends with this: a pass failed while it was in the next one or
  // waited for it.
  absl::Status failure = absl::OkStatus();
  std::vector<LogitRows> rows = {};
  absl::StatusOr<std::optional<Want>> taken = std::nullopt;
  Ending ending = {};
  // Where it waits for KV blocks (RoomWait).
  uint64_t tried_at = 0;  // the number of changes until then
  std::optional<Clock::time_point> waits_since = {};
  bool is_opening = false;  // of a context from its beginning
  bool had_chunks = false;
  Clock::time_point admitted = {};
  Clock::duration time_of_others = {};  // that a moved stream has taken
  int num_branch_rows = 0;  // run so far, each of a token of a draft
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_JOB_H_
