// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_ENGINE_METRICS_H_
#define OUTRIDER_CORE_ENGINE_ENGINE_METRICS_H_

#include <prometheus/histogram.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/telemetry/metric_registry.h"

namespace outrider {

// What a node counts of its passes and its cache: written by the scheduler,
// read by scrapes. Each number is right by itself. Thread-safe.
class EngineMetrics {
 public:
  using Boundaries = prometheus::Histogram::BucketBoundaries;
  static Boundaries PowersOfTwo() {
    return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  }
  static double Seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  }

  prometheus::Histogram rows_per_pass{PowersOfTwo()};
  prometheus::Histogram sessions_per_pass{PowersOfTwo()};
  // What calls waited for passes, by kind of work: those with a prompt to run
  // in chunks, and the others.
  prometheus::Histogram decode_queued{MetricRegistry::DurationBuckets()};
  prometheus::Histogram prefill_queued{MetricRegistry::DurationBuckets()};
  prometheus::Histogram pass_time{MetricRegistry::DurationBuckets()};

  std::atomic<int64_t> num_chunks = 0;
  std::atomic<int64_t> num_launched_early = 0;  // passes, beside another one
  // What became of work ahead: branches drafted on, those that had no room, and
  // calls that a newer step ended.
  std::atomic<int64_t> num_branches = 0;
  std::atomic<int64_t> num_branches_without_room = 0;
  std::atomic<int64_t> num_superseded = 0;
  // Tokens drafted on branches in calls that were given up.
  std::atomic<int64_t> num_tokens_given_up = 0;
  std::atomic<int64_t> num_preempted = 0;
  // What passes took for texts of streams that have begun, in nanoseconds, by
  // whether anybody else was here.
  std::atomic<int64_t> reprefill_time_beside_others = 0;
  std::atomic<int64_t> reprefill_time_alone = 0;
  // Tokens that a model drew and went on with, and that were not what the work
  // drew, or came after such a one.
  std::atomic<int64_t> num_refused_tokens = 0;
  // Tokens that sessions with a salt were filled with: all, and those that were
  // cached before.
  std::atomic<int64_t> num_sharable_tokens = 0;
  std::atomic<int64_t> num_reused_tokens = 0;
  std::atomic<int> num_blocks_used = 0;
  std::atomic<int> num_blocks_shared = 0;  // of those, by several sessions
  std::atomic<int> num_blocks_kept = 0;    // free, but may be reused
  std::atomic<int> num_blocks = 0;
  std::atomic<int> num_sessions = 0;
  std::atomic<int64_t> num_cached_tokens = 0;
  // These wait for a pass, or to be admitted. Work ahead does so by design, and
  // is left out.
  std::atomic<int> num_waiting = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_ENGINE_METRICS_H_
