// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_BENCH_RUN_H_
#define OUTRIDER_BENCH_COMMAND_BENCH_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/command/bench_options.h"
#include "bench/command/progress.h"
#include "bench/load/baselines.h"
#include "client/generation_client.h"

namespace outrider::bench {

// Measures points, one after the other, on a trio of its own or on a running
// deployment. Thread-compatible.
class BenchRun {
 public:
  // Starts what has to be started and waits for its nodes; those of a running
  // deployment have been found before. UNAVAILABLE: they do not come;
  // INVALID_ARGUMENT: they cannot do what is asked for. Keeps `options`.
  static absl::StatusOr<std::unique_ptr<BenchRun>> Start(
      const BenchOptions& options, Cancellation& cancellation);

  // FAILED_PRECONDITION: the network could not be emulated this time, or no
  // request of an open loop was due;
  // UNAVAILABLE: a program of the trio has ended, and no point can follow.
  absl::StatusOr<Measurement> MeasurePoint(const Point& point,
                                           const Baselines& baselines);

 private:
  BenchRun(const BenchOptions& options, Cancellation& cancellation)
      : options_(options), cancellation_(cancellation) {}

  // Points the client at the coordinator with this network.
  absl::Status Connect(const Point& point);
  absl::Status MeasureInside();
  // Whether all of a trio of its own runs.
  absl::Status CheckPrograms() const;
  LoadOptions ToLoad(const Point& point) const;
  // Puts it on the coordinator. Should a program of the trio end, so does the
  // load: its requests would wait for that one until they time out.
  LoadResult Generate(absl::Span<const Prompt> prompts,
                      const LoadOptions& load);
  void AddBaselines(const Baselines& baselines, Measurement& measured) const;

  const BenchOptions& options_;
  Cancellation& cancellation_;
  std::unique_ptr<Trio> trio_;  // null: a running deployment
  std::string coordinator_;
  std::unique_ptr<client::GenerationClient> client_;
  // Times inside the models' own processes, right before the point.
  std::optional<InsideTimes> inside_ = {};
  double draft_step_ms_ = 0;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_BENCH_RUN_H_
