// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_COUNTERS_H_
#define OUTRIDER_CORE_NODE_NODE_COUNTERS_H_

#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Draft or Verify; Truncate or Release.
enum class NodeCall { kModel, kCache };

// What a node counts of its calls: written by them, read by scrapes and by the
// drain. Each number is right by itself; several read together may be of
// different instants. Thread-safe.
class NodeCounters {
 public:
  static constexpr int kNumCodes = 17;  // of gRPC

  void Submitted() { Add(num_waiting_, 1); }
  void Started(NodeCall call, std::chrono::nanoseconds queued) {
    calls_[static_cast<int>(call)].queued.Observe(Seconds(queued));
    Add(num_waiting_, -1);
    Add(num_running_, 1);
  }
  void Finished(NodeCall call, absl::StatusCode code,
                std::chrono::nanoseconds computed) {
    PerCall& mine = calls_[static_cast<int>(call)];
    mine.computed.Observe(Seconds(computed));
    Add(mine.finished[static_cast<int>(code) % kNumCodes], 1);
    Add(num_finished_, 1);
    Add(num_running_, -1);
  }
  // In place of the two above.
  void Refused(NodeCall call) {
    Add(num_waiting_, -1);
    Add(calls_[static_cast<int>(call)]
            .finished[static_cast<int>(absl::StatusCode::kResourceExhausted)],
        1);
  }

  int64_t num_waiting() const { return num_waiting_; }
  int64_t num_running() const { return num_running_; }
  int64_t num_finished() const { return num_finished_; }
  int64_t num_finished(NodeCall call, absl::StatusCode code) const {
    return calls_[static_cast<int>(call)].finished[static_cast<int>(code)];
  }
  // Seconds, in MetricRegistry::DurationBuckets().
  const prometheus::Histogram& queued(NodeCall call) const {
    return calls_[static_cast<int>(call)].queued;
  }
  const prometheus::Histogram& computed(NodeCall call) const {
    return calls_[static_cast<int>(call)].computed;
  }

  // Set about once a second, by whoever may look at the sessions.
  std::atomic<int> num_sessions = 0;
  std::atomic<int> num_cached_tokens = 0;
  // Set once, by the drain: this node wants no more sessions.
  std::atomic<bool> draining = false;

 private:
  using Count = std::atomic<int64_t>;
  struct PerCall {
    std::array<Count, kNumCodes> finished = {};
    prometheus::Histogram queued{MetricRegistry::DurationBuckets()};
    prometheus::Histogram computed{MetricRegistry::DurationBuckets()};
  };
  static double Seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  }
  static void Add(Count& count, int64_t value) {
    count.fetch_add(value, std::memory_order_relaxed);
  }

  std::array<PerCall, 2> calls_;
  Count num_waiting_ = 0;
  Count num_running_ = 0;
  Count num_finished_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_COUNTERS_H_
