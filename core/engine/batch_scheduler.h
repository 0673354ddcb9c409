// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_BATCH_SCHEDULER_H_
#define OUTRIDER_CORE_ENGINE_BATCH_SCHEDULER_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/engine/engine_metrics.h"
#include "core/engine/job.h"
#include "core/engine/pass.h"
#include "core/engine/pass_hold.h"
#include "core/engine/pass_time.h"
#include "core/engine/passes_in_flight.h"
#include "core/engine/ready_work.h"
#include "core/engine/reprefill_budget.h"
#include "core/engine/room_wait.h"
#include "core/engine/scheduling_options.h"
#include "core/engine/work.h"
#include "core/model/pending_pass.h"
#include "core/session/node_sessions.h"

namespace outrider {

// Which work is in which pass of the model: the rules, without threads, model
// or clock. A pass takes from all that is ready (ReadyWork). It is held for
// those that were just answered and can be back in time, lest sessions split
// into cohorts. Where nobody is waited for, a device may be given one before
// the other ends (PassesInFlight). Not thread-safe; its metrics are.
class BatchScheduler {
 public:
  using Clock = NodeSessions::Clock;
  using Options = SchedulingOptions;

  explicit BatchScheduler(Options options);

  void Submit(std::unique_ptr<Work> work, Clock::time_point now);
  // Comes before NextPass: ends what nobody waits for, and admits the others.
  void Sweep(Clock::time_point now);
  // What is to run now, until EndPass. Null: nothing before ask_again_at().
  const Pass* NextPass(Clock::time_point now);
  void NoteLaunch(Clock::duration time) { passes_.set_launch_time(time); }
  // The first has ended: with that answer of the model's to its extensions.
  // UNAVAILABLE: the device is lost, and with it all work from here on.
  void EndPass(PassResults results, Clock::time_point now);

  // A job, or nullptr: whoever gets it calls its Begin or its Take, and gives
  // it back, or in the end its Finish.
  std::unique_ptr<Job> NextToBegin();
  void Begun(std::unique_ptr<Job> job, Clock::time_point now);
  std::unique_ptr<Job> NextToTake();
  void Taken(std::unique_ptr<Job> job, Clock::time_point now);
  std::unique_ptr<Job> NextEnded();

  void Expire(Clock::time_point now);  // about once a second
  // Advisory; see NodeSessions.
  bool Truncate(const RequestHeader& header, int length);
  bool Release(const RequestHeader& header);

  // When to ask for the next pass again; and whether somebody is waited for.
  std::optional<Clock::time_point> ask_again_at() const;
  bool IsHolding() const { return hold_.IsHolding(); }
  bool IsHeld(Clock::time_point now) const;  // for rows: no look finds a pass
  auto pass_start() const { return passes_.start(); }  // if one runs
  int num_jobs() const { return num_jobs_; }  // not yet handed out to Finish
  bool HasJobToHandOut() const;               // to Begin, Take or Finish
  bool IsOneDecode() const;  // which the thread that submits it may run
  bool is_lost() const { return is_lost_; }
  const NodeSessions& sessions() const { return sessions_; }
  const EngineMetrics& metrics() const { return metrics_; }

 private:
  using Queue = ReadyWork::Queue;

  bool IsWelcome(const Work& work) const;
  absl::Status ReasonToEnd(const Job& job) const;  // OK: none
  void EndAbandoned(Queue& queue, Clock::time_point now, bool for_room);
  void AdmitWaiting(Clock::time_point now);
  // Takes the job, unless it is to wait: HasRoom, where there is room.
  void Admit(std::unique_ptr<Job>& job, Clock::time_point now);
  bool HasRoom(std::unique_ptr<Job>& job, const NodeSession* live,
               Clock::time_point now);
  void GiveSession(Job& job, NodeSession& own, Clock::time_point now);
  bool HasBranches(Job& job);  // makes those that it wants, as far as it can
  void End(std::unique_ptr<Job> job, absl::Status why, Clock::time_point now);
  void LeaveSession(Job& job, const absl::Status& why, Clock::time_point now);
  void Expect(const Job& job, Clock::time_point now);  // its next call
  bool IsSuperseded(const Job& job) const;  // by a newer call of its session
  void CountGoingOn(const Job& job, int change);
  int NumGoingOn() const;  // whom the next pass is held for
  bool HasReady() const;
  // Notes what a pass has cached of the job's, and gives it its rows.
  absl::Status TakeIn(const Pass::Part& part,
                      absl::Span<PassResults::value_type> results);
  void GoOn(std::unique_ptr<Job> job, Clock::time_point now);
  void UpdateMetrics();

  const Options options_;
  NodeSessions sessions_;
  EngineMetrics metrics_;
  PassTime pass_time_;
  ReprefillBudget reprefill_budget_;
  Queue waiting_;  // to be admitted
  ReadyWork ready_;
  PassesInFlight passes_;
  Queue to_begin_, to_take_, ended_;
  PassHold hold_;
  int num_jobs_ = 0;
  int num_reprefills_ = 0;  // that are admitted
  // Jobs to begin or to take, or handed out for it, less those with is_last.
  int num_going_on_ = 0;
  int num_ahead_going_on_ = 0;
  RoomWait room_wait_;  // of those in waiting_
  bool is_lost_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_BATCH_SCHEDULER_H_
