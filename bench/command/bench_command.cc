// SPDX-License-Identifier: Apache-2.0
#include "bench/command/bench_command.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/command/bench_run.h"
#include "bench/command/deployment.h"
#include "bench/command/progress.h"
#include "bench/report/html_report.h"
#include "bench/report/report.h"
#include "client/interrupt_watcher.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

using client::CommandIo;

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error)
      .parent_path()
      .string();
}

PointCosts Costs(const BenchOptions& options) {
  PointCosts costs = {.seconds = options.flags.seconds,
                      .max_tokens = options.flags.max_tokens,
                      .num_warm_up = options.flags.num_warm_up};
  if (options.trio.simulation) {
    costs.draft_ms = options.trio.simulation->draft_ms +
                     options.trio.simulation->draft_row_ms;
    costs.verify_ms = options.trio.simulation->verify_ms;
  }
  return costs;
}

double Estimate(const BenchOptions& options, const std::vector<Point>& points) {
  double seconds = 0;
  for (const Point& point : points) {
    seconds += EstimateSeconds(point, Costs(options));
  }
  // Starting, and timing the verifier alone: a model before each point, a
  // timing model once, over about 200 passes.
  if (options.flags.coordinator) return seconds;
  const double inside = 0.2 * Costs(options).verify_ms + 1;
  const double num_times =
      options.trio.simulation ? 1 : static_cast<double>(points.size());
  return seconds + 4 + inside * num_times;
}

int PrintPlan(const BenchOptions& options, const std::vector<Point>& points,
              const CommandIo& io) {
  const Grid& grid = options.grid;
  io.out << "would measure " << points.size()
         << " points: " << grid.rtts_ms.size() << " round trips, "
         << grid.loads.size() << " loads, K = 0 and "
         << grid.ks.size() - std::count(grid.ks.begin(), grid.ks.end(), 0)
         << " others, " << grid.num_repeats << " repeats\n";
  for (const auto& [name, value] : options.configuration.binding) {
    io.out << "  " << name << ": " << value << "\n";
  }
  for (const Point& point : points) {
    if (point.repeat > 0) break;
    io.out << absl::StrFormat("  RTT %g ms, %s, K = %s: about %.1f s each\n",
                              point.cell.rtt_ms, point.cell.load.ToString(),
                              point.cell.drafting().ToString(),
                              EstimateSeconds(point, Costs(options)));
  }
  io.out << "estimated time: " << Duration(Estimate(options, points)) << "\n";
  return client::Finish(io, client::kExitOk);
}

absl::Status WriteReports(const Report& report, const ResultsFile& results) {
  OUTRIDER_RETURN_IF_ERROR(results.Write("results.csv", ToCsv(report)));
  OUTRIDER_RETURN_IF_ERROR(results.Write("report.md", ToMarkdown(report)));
  return results.Write("report.html", ToHtml(report));
}

// Whether all points could be measured.
absl::StatusOr<bool> MeasureAll(const BenchOptions& options,
                                const std::vector<Point>& points,
                                const CommandIo& io, ResultsFile& results,
                                Cancellation& cancellation) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<BenchRun> run,
                            BenchRun::Start(options, cancellation));
  Progress progress(io, static_cast<int>(points.size()),
                    Estimate(options, points));
  bool is_complete = true;
  for (const Point& point : points) {
    if (cancellation.cancelled()) break;
    progress.Begin(point);
    absl::StatusOr<Measurement> measured =
        run->MeasurePoint(point, results.BaselinesOf(point));
    if (cancellation.cancelled()) break;
    if (absl::IsFailedPrecondition(measured.status())) {
      progress.Skip(point, std::string(measured.status().message()));
      is_complete = false;
      continue;
    }
    if (!measured.ok()) progress.Finish();
    OUTRIDER_RETURN_IF_ERROR(measured.status());
    OUTRIDER_RETURN_IF_ERROR(results.Append(*measured));
    progress.End(*measured);
  }
  progress.Finish();
  return is_complete;
}

// What is to be measured, bound before any old result is read: what runs at
// --coordinator, checked, or the files of models, which may be large.
absl::Status BindNodes(BenchOptions& options, const CommandIo& io,
                       Cancellation& cancellation) {
  if (!options.flags.coordinator) {
    if (!options.trio.simulation) {
      io.err << "reading the models' files" << std::endl;
    }
    BindModels(options.trio, options.configuration, cancellation);
    return absl::OkStatus();
  }
  OUTRIDER_ASSIGN_OR_RETURN(const client::Deployment deployment,
                            FindNodes(options, *options.flags.coordinator,
                                      std::chrono::seconds(2), cancellation));
  Bind(deployment, options.grid.HasDrafts(), options.configuration);
  return absl::OkStatus();
}

int Fail(const CommandIo& io, const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? client::FailUsage(io.err, status)
                                         : client::FailCall(io.err, status);
}

// The exit status that the results themselves call for.
int ExitStatusOf(const BenchOptions& options, const Report& report,
                 const CommandIo& io) {
  int exit_status = client::kExitOk;
  if (report.num_failures() > 0) {
    io.err << "outrider: " << report.num_failures() << " requests failed\n";
    exit_status = client::kExitFailed;
  }
  double best = 0;
  for (const CellReport& cell : report.cells) {
    // A crowd is faster than one user by itself.
    if (cell.cell().k > 0) best = std::max(best, cell.speedup);
  }
  if (options.flags.fail_under && best < *options.flags.fail_under) {
    io.err << absl::StrFormat(
        "outrider: the best speed-up of a K above 0 over plain decoding in the "
        "verifier is %.3f, less than --fail-under %g\n",
        best, *options.flags.fail_under);
    exit_status = client::kExitFailed;
  }
  return exit_status;
}

}  // namespace

int Bench(BenchOptions& options, const CommandIo& io,
          Cancellation& cancellation) {
  std::vector<Point> points = PlanPoints(options.grid);
  if (options.flags.dry_run) return PrintPlan(options, points, io);

  const absl::Status bound = BindNodes(options, io, cancellation);
  if (cancellation.cancelled()) return client::kExitInterrupted;
  if (!bound.ok()) return Fail(io, bound);
  absl::StatusOr<std::unique_ptr<ResultsFile>> opened = ResultsFile::Open(
      options.flags.out, options.configuration, options.flags.resume);
  if (!opened.ok()) return client::FailUsage(io.err, opened.status());
  ResultsFile& results = **opened;
  std::erase_if(points,
                [&results](const Point& point) { return results.Has(point); });

  absl::StatusOr<bool> is_complete = true;
  if (!points.empty()) {
    io.err << points.size() << " points, about "
           << Duration(Estimate(options, points)) << std::endl;
    is_complete = MeasureAll(options, points, io, results, cancellation);
  }
  const Report report =
      MakeReport(options.configuration, results.measurements());
  const absl::Status written =
      report.cells.empty() ? absl::OkStatus() : WriteReports(report, results);
  if (cancellation.cancelled()) {
    io.err << "interrupted: " << results.measurements().size()
           << " points are in " << options.flags.out << "; --resume goes on\n";
    return client::kExitInterrupted;
  }
  if (!is_complete.ok()) return Fail(io, is_complete.status());
  if (!written.ok()) return client::FailCall(io.err, written);
  if (report.cells.empty()) return client::Finish(io, client::kExitFailed);
  io.out << ToMarkdown(report) << "\nreport: " << options.flags.out
         << "/report.html\n";
  const int exit_status = ExitStatusOf(options, report, io);
  return client::Finish(io, *is_complete ? exit_status : client::kExitFailed);
}

int BenchCommand(const BenchFlags& flags, bool is_sweep) {
  const CommandIo io = client::StandardIo();
  absl::StatusOr<BenchOptions> options =
      ToBenchOptions(flags, is_sweep, ProgramFolder());
  if (!options.ok()) return client::FailUsage(io.err, options.status());
  Cancellation cancellation;
  const client::InterruptWatcher watcher(cancellation);
  return Bench(*options, io, cancellation);
}

}  // namespace outrider::bench
