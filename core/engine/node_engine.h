// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_NODE_ENGINE_H_
#define OUTRIDER_CORE_ENGINE_NODE_ENGINE_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/engine/batch_scheduler.h"
#include "core/engine/work.h"
#include "core/model/causal_lm.h"

namespace outrider {

// Owns a node's model and sessions, and the threads that run passes, take rows
// and answer. While one of them is in a pass the others finish what the pass
// before gave, and may launch the next one, where the model takes it. Thread-
// safe.
//
// A thread that comes out of a pass answers who waits before it begins the next
// one: that would take the cores from the others. A device of the model's own
// takes none, and would idle meanwhile: there the next pass goes first.
//
// Work that is alone and has no prompt to run is run on the thread that submits
// it: handing it over would cost a wake-up, up to 40 us on a virtual machine,
// and with one client that is every round.
class NodeEngine {
 public:
  struct Options {
    BatchScheduler::Options scheduling = {};
    int num_threads = 2;
    // The device is lost: called once, on one of the threads.
    std::function<void()> on_lost = {};
    // How often it is looked whose lease has run out.
    std::chrono::nanoseconds expiry_period = std::chrono::seconds(1);
  };

  // The model's KV blocks are set up, as many as the options say.
  NodeEngine(std::unique_ptr<CausalLm> model, Options options);
  NodeEngine(const NodeEngine&) = delete;
  NodeEngine& operator=(const NodeEngine&) = delete;
  // Finishes what was submitted, then ends. No caller may be in Submit.
  ~NodeEngine();

  // What models and work throw ends their own work. From the scheduler itself
  // an exception would leave what all sessions share half changed, with blocks
  // of memory that nobody owns, or two do: it ends the process, here as on the
  // engine's own threads.

  // Always ends in the work's Finish.
  void Submit(std::unique_ptr<Work> work) noexcept;
  // Advisory; see NodeSessions.
  bool Truncate(const RequestHeader& header, int length) noexcept;
  bool Release(const RequestHeader& header) noexcept;

  // When the pass began that runs now, if one does.
  std::optional<std::chrono::steady_clock::time_point> pass_start() const;

  const EngineMetrics& metrics() const { return scheduler_metrics_; }
  const CausalLm& model() const { return *model_; }

 private:
  using Clock = BatchScheduler::Clock;

  // A pass that the model was given.
  struct Launched {
    const Pass* pass = nullptr;
    std::unique_ptr<PendingPass> pending = {};
  };

  void Run();
  bool MayLaunch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // These unlock while they run; false where there is nothing to do.
  bool RunPass() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool LaunchPass() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FinishPass() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool BeginOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FinishOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsPassing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return scheduler_.pass_start().has_value();
  }
  // What they throw is what all of the pass ends with.
  std::unique_ptr<PendingPass> Launch(const Pass& pass);
  static PassResults Finish(const Launched& launched);

  const std::unique_ptr<CausalLm> model_;
  const bool passes_go_first_;
  const std::function<void()> on_lost_;
  const std::chrono::nanoseconds expiry_period_;

  mutable Mutex mu_;
  CondVar wake_;
  BatchScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  const EngineMetrics& scheduler_metrics_;          // thread-safe
  bool is_launching_ ABSL_GUARDED_BY(mu_) = false;  // some thread does
  bool is_finishing_ ABSL_GUARDED_BY(mu_) = false;
  // The scheduler's, in its order, but for one that is being launched.
  std::deque<Launched> launched_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  bool told_lost_ ABSL_GUARDED_BY(mu_) = false;
  Clock::time_point next_expiry_ ABSL_GUARDED_BY(mu_) = {};

  std::vector<std::jthread> threads_;  // last: they use the members above
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_NODE_ENGINE_H_
