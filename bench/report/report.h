// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_REPORT_H_
#define OUTRIDER_BENCH_REPORT_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/load/measurement.h"
#include "bench/load/prediction.h"
#include "bench/report/results_file.h"

namespace outrider::bench {

// A cell over its repeats: counts are sums, all else medians. Speed-ups are
// those of the repeats that had something to be compared with; 0: none had.
struct CellReport {
  Measurement measured = {};
  int num_repeats = 0;
  double speedup = 0;  // over plain decoding inside the verifier
  double lowest_speedup = 0;
  double highest_speedup = 0;
  double network_speedup = 0;  // over K = 0 through the same network
  // What the formula says, where one user at a time was served.
  std::optional<Prediction> prediction = {};

  std::optional<double> predicted_speedup() const;
  // Predicted / measured - 1; 0 where one of them is not there.
  double prediction_error() const;
  // Draft tokens that came to nothing, for each that was generated.
  double WastedShare() const;
  // What the cells of a row are ranked by.
  double rank() const { return speedup > 0 ? speedup : network_speedup; }
  const Cell& cell() const { return measured.point.cell; }
};

inline constexpr double kLargeDifference = 0.15;

struct Report {
  Configuration configuration = {};
  std::vector<CellReport> cells =
      {};  // sorted by round trip, load, schedule, K
  // |predicted / measured - 1|, the median over the cells that have both and a
  // higher round trip than the lowest, as that one gave the overhead.
  std::optional<double> median_prediction_error = {};

  std::vector<double> rtts_ms() const;
  std::vector<Load> loads() const;
  std::vector<Drafting> draftings() const;
  const CellReport* Find(const Cell& cell) const;  // null: not measured
  // The best cell of the heat map's row; null where nothing was measured.
  const CellReport* Best(double rtt_ms, const Load& load) const;
  // A sentence for each cell whose prediction is off by more than
  // kLargeDifference: where, by how much, and which part of a round most.
  std::vector<std::string> LargeDifferences() const;
  // "RTT 0 ms, 8 users, K = 4": those with a point that ended before its time,
  // as its prompts were used up.
  std::vector<std::string> CutShort() const;
  int num_failures() const;
  // Whether any drafts were asked for before their round.
  bool HasAhead() const;
  // What the formula takes for granted and this machine does not give; or "".
  std::string BrokenAssumption() const;
};
// Marked as simulated, and with notes, as the measurements say.
Report MakeReport(const Configuration& configuration,
                  absl::Span<const Measurement> measurements);

// "5.03", or "5.03, drafter 20.11" where that was set apart; "" where nothing
// was emulated.
std::string AchievedRtt(const Measurement& measured);
// Comma-separated values, a line a cell.
std::string ToCsv(const Report& report);
// What people read: the best K per round trip, the heat map, all columns.
std::string ToMarkdown(const Report& report);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_REPORT_H_
