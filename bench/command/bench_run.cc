// SPDX-License-Identifier: Apache-2.0
#include "bench/command/bench_run.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "bench/command/deployment.h"
#include "bench/load/machine.h"
#include "core/base/child_cancellation.h"
#include "core/base/status_macros.h"
#include "core/base/stoppable_sleep.h"
#include "core/sampling/sampling_params.h"

namespace outrider::bench {
namespace {

using client::GenerationClient;

// T(rows): beyond what was measured, on the line of the last two.
double RowsMs(const std::vector<double>& rows_ms, int rows) {
  const int known = static_cast<int>(rows_ms.size());
  if (known == 0) return 0;
  if (rows <= known) return rows_ms[rows - 1];
  const double slope =
      known > 1 ? std::max(0.0, rows_ms[known - 1] - rows_ms[known - 2]) : 0;
  return rows_ms[known - 1] + slope * (rows - known);
}

// Each repeat has a window of the prompts, which begins here.
size_t FirstPrompt(const BenchOptions& options, int repeat) {
  return options.prompts.size() * repeat / options.grid.num_repeats;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchRun>> BenchRun::Start(
    const BenchOptions& options, Cancellation& cancellation) {
  std::unique_ptr<BenchRun> run(new BenchRun(options, cancellation));
  if (options.flags.coordinator) return run;
  if (options.trio.placement) {
    // What is started from here runs there too: coordinators, load, networks.
    OUTRIDER_RETURN_IF_ERROR(KeepThisThreadOn(options.trio.placement->others));
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      run->draft_step_ms_,
      MeasureDraftStepMs(options.trio,
                         options.request.temperature >= kGreedyTemperature,
                         cancellation));
  OUTRIDER_ASSIGN_OR_RETURN(
      run->trio_, Trio::Start(options.trio, options.network, cancellation));
  for (const std::string& coordinator : run->trio_->coordinators()) {
    // They have only just been started.
    OUTRIDER_RETURN_IF_ERROR(
        FindNodes(options, coordinator, std::chrono::seconds(20), cancellation)
            .status());
  }
  return run;
}

absl::Status BenchRun::Connect(const Point& point) {
  std::string coordinator = options_.flags.coordinator.value_or("");
  if (trio_ != nullptr) {
    const double rtt_ms = point.cell.rtt_ms;
    OUTRIDER_ASSIGN_OR_RETURN(
        coordinator,
        trio_->Connect(
            {.drafter_ms = options_.flags.drafter_rtt_ms.value_or(rtt_ms),
             .verifier_ms = rtt_ms}));
  }
  if (coordinator != coordinator_) {
    client_ =
        std::make_unique<GenerationClient>(coordinator, options_.flags.tls);
    coordinator_ = coordinator;
  }
  return absl::OkStatus();
}

absl::Status BenchRun::MeasureInside() {
  if (trio_ == nullptr) return absl::OkStatus();
  // Timing models have one time; that of real ones drifts with the machine.
  if (inside_.has_value() && options_.trio.simulation) return absl::OkStatus();
  OUTRIDER_ASSIGN_OR_RETURN(inside_,
                            MeasureVerifier(options_.trio, cancellation_));
  return absl::OkStatus();
}

absl::Status BenchRun::CheckPrograms() const {
  return trio_ == nullptr ? absl::OkStatus() : trio_->CheckPrograms();
}

LoadOptions BenchRun::ToLoad(const Point& point) const {
  const BenchFlags& flags = options_.flags;
  const auto seconds = [](double value) {
    return std::chrono::duration<double>(value);
  };
  LoadOptions load = {
      .load = point.cell.load,
      .request = options_.request,
      .duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
          seconds(flags.seconds)),
      .request_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
          seconds(flags.timeout_seconds)),
      .num_warm_up = flags.num_warm_up,
      .seed = flags.seed + FirstPrompt(options_, point.repeat)};
  load.request.is_k_auto = point.cell.k == kAutoK;
  if (!load.request.is_k_auto) {
    load.request.num_speculative_tokens = point.cell.k;
    // What is measured has exactly so many drafts, whatever the coordinator's
    // default.
    if (!load.request.draft_options.min_draft_probability.has_value()) {
      load.request.draft_options.min_draft_probability = 0;
    }
  }
  load.request.schedule = point.cell.schedule;
  return load;
}

LoadResult BenchRun::Generate(absl::Span<const Prompt> prompts,
                              const LoadOptions& load) {
  ChildCancellation running(cancellation_);
  const std::jthread watch([this, &running](const std::stop_token& stop) {
    while (SleepUnlessStopped(std::chrono::milliseconds(200), stop)) {
      if (!CheckPrograms().ok()) return running.get().Cancel();
    }
  });
  return GenerateLoad(*client_, prompts, load, running.get());
}

absl::StatusOr<Measurement> BenchRun::MeasurePoint(const Point& point,
                                                   const Baselines& baselines) {
  OUTRIDER_RETURN_IF_ERROR(CheckPrograms());
  OUTRIDER_RETURN_IF_ERROR(MeasureInside());
  OUTRIDER_RETURN_IF_ERROR(Connect(point));
  // All K of a row begin with the same prompts, another repeat has others.
  const size_t first = FirstPrompt(options_, point.repeat);
  const size_t end = FirstPrompt(options_, point.repeat + 1);
  const LoadResult result =
      Generate(absl::MakeSpan(options_.prompts).subspan(first, end - first),
               ToLoad(point));
  if (cancellation_.cancelled()) return absl::CancelledError("interrupted");
  OUTRIDER_RETURN_IF_ERROR(CheckPrograms());
  if (result.requests.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "no request was due in %g s: pass more --seconds or a higher --rate",
        options_.flags.seconds));
  }
  Measurement measured = Measure(point, result);
  measured.origin = DescribeOrigin(options_.configuration.is_simulated);
  AddBaselines(baselines, measured);
  return measured;
}

void BenchRun::AddBaselines(const Baselines& baselines,
                            Measurement& measured) const {
  if (trio_ != nullptr) {
    measured.verifier_rtt_ms = trio_->achieved().verifier_ms;
    measured.drafter_rtt_ms = trio_->achieved().drafter_ms;
    measured.plain_token_ms = options_.request.temperature < kGreedyTemperature
                                  ? inside_->plain_token_ms
                                  : inside_->plain_sampled_token_ms;
    measured.model_draft_step_ms = draft_step_ms_;
    const int k = measured.point.cell.k;
    if (k != kAutoK) measured.model_verify_ms = RowsMs(inside_->rows_ms, k + 1);
  } else {
    NotePlainVerifier(baselines, measured);
  }
  NotePlainNetwork(baselines, measured);
}

}  // namespace outrider::bench
