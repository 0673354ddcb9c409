// SPDX-License-Identifier: Apache-2.0
#include "bench/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace outrider::bench {
namespace {

using Repeats = std::vector<Measurement>;

template <typename Get>
double MedianBy(const Repeats& repeats, Get get) {
  std::vector<double> values;
  for (const Measurement& m : repeats) values.push_back(get(m));
  return MedianOf(std::move(values));
}

// Repeats without the value are left out; 0: none has it.
template <typename Get>
double MedianOfThoseWith(const Repeats& repeats, Get get) {
  std::vector<double> values;
  for (const Measurement& m : repeats) {
    if (const double value = get(m); value > 0) values.push_back(value);
  }
  return values.empty() ? 0 : MedianOf(std::move(values));
}

Spread MedianSpread(const Repeats& repeats, Spread Measurement::*spread) {
  Spread median;
  for (double Spread::*part :
       {&Spread::p50, &Spread::p90, &Spread::p99, &Spread::mean}) {
    median.*part = MedianBy(
        repeats, [=](const Measurement& m) { return m.*spread.*part; });
  }
  return median;
}

void AddCounts(const std::vector<int>& counts, std::vector<int>& sums) {
  sums.resize(std::max(sums.size(), counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

Measurement Combine(const Repeats& repeats) {
  Measurement all = repeats[0];
  for (auto it = repeats.begin() + 1; it != repeats.end(); ++it) {
    all.num_requests += it->num_requests;
    all.num_failures += it->num_failures;
    if (all.first_failure.empty()) all.first_failure = it->first_failure;
    all.num_tokens += it->num_tokens;
    all.num_rounds += it->num_rounds;
    all.counts.Add(it->counts);
    all.num_draft_failures += it->num_draft_failures;
    all.num_misses += it->num_misses;
    all.wall_seconds += it->wall_seconds;
    all.ran_out_of_prompts |= it->ran_out_of_prompts;
    AddCounts(it->offered, all.offered);
    AddCounts(it->accepted, all.accepted);
  }
  for (double Measurement::*value :
       {&Measurement::mean_in_flight, &Measurement::tokens_per_second,
        &Measurement::tokens_per_second_per_user,
        &Measurement::tokens_per_round, &Measurement::drafter_bytes_per_token,
        &Measurement::verifier_bytes_per_token,
        &Measurement::drafter_messages_per_token,
        &Measurement::verifier_messages_per_token,
        &Measurement::model_draft_step_ms, &Measurement::model_verify_ms}) {
    all.*value =
        MedianBy(repeats, [=](const Measurement& m) { return m.*value; });
  }
  for (double Measurement::*baseline :
       {&Measurement::plain_token_ms, &Measurement::plain_network_token_ms,
        &Measurement::plain_network_tokens_per_second}) {
    all.*baseline = MedianOfThoseWith(
        repeats, [=](const Measurement& m) { return m.*baseline; });
  }
  for (double RoundSplit::*part :
       {&RoundSplit::draft_ms, &RoundSplit::drafter_network_ms,
        &RoundSplit::verify_ms, &RoundSplit::verifier_network_ms,
        &RoundSplit::wait_ms, &RoundSplit::rest_ms}) {
    all.split.*part =
        MedianBy(repeats, [=](const Measurement& m) { return m.split.*part; });
  }
  for (std::optional<double> Measurement::*rtt :
       {&Measurement::verifier_rtt_ms, &Measurement::drafter_rtt_ms}) {
    if (!(all.*rtt).has_value()) continue;
    all.*rtt = MedianBy(
        repeats, [=](const Measurement& m) { return (m.*rtt).value_or(0); });
  }
  for (Spread Measurement::*spread :
       {&Measurement::first_token_ms, &Measurement::token_ms,
        &Measurement::request_ms}) {
    all.*spread = MedianSpread(repeats, spread);
  }
  return all;
}

CellReport MakeCell(const Repeats& repeats) {
  CellReport cell = {
      .measured = Combine(repeats),
      .num_repeats = static_cast<int>(repeats.size()),
      .speedup = MedianOfThoseWith(
          repeats, [](const Measurement& m) { return m.speedup(); }),
      .network_speedup = MedianOfThoseWith(
          repeats, [](const Measurement& m) { return m.network_speedup(); })};
  cell.lowest_speedup = cell.highest_speedup = cell.speedup;
  for (const Measurement& m : repeats) {
    const double speedup = m.speedup();
    if (speedup <= 0) continue;
    cell.lowest_speedup = std::min(cell.lowest_speedup, speedup);
    cell.highest_speedup = std::max(cell.highest_speedup, speedup);
  }
  return cell;
}

void AddPredictions(Report& report) {
  const double lowest_rtt_ms = report.cells.front().cell().rtt_ms;
  std::vector<double> errors;
  for (CellReport& cell : report.cells) {
    const Measurement& m = cell.measured;
    // The formula is of one user and one K.
    if (m.point.cell.load != Load{} || m.point.cell.k == kAutoK) continue;
    if (m.num_rounds == 0 || m.plain_token_ms <= 0) continue;
    Cell lowest = m.point.cell;
    lowest.rtt_ms = lowest_rtt_ms;
    const CellReport* const base = report.Find(lowest);
    if (base == nullptr || base->measured.num_rounds == 0) continue;
    cell.prediction = Predict(m, cell.speedup, base->measured,
                              report.configuration.is_simulated);
    if (m.point.cell.rtt_ms > lowest_rtt_ms && cell.speedup > 0) {
      errors.push_back(std::abs(cell.prediction_error()));
    }
  }
  if (!errors.empty()) {
    report.median_prediction_error = MedianOf(std::move(errors));
  }
}

// Machine, load, dates and commits of what was measured, a resumed run's
// parts included.
void AddOrigins(absl::Span<const Measurement> measurements,
                Configuration& configuration) {
  if (measurements.empty()) return;
  std::set<std::string> machines;
  std::set<std::string> dates;
  std::set<std::string> commits;
  std::set<double> loads;
  for (const Measurement& m : measurements) {
    configuration.is_simulated |= m.origin.is_simulated;
    machines.insert(m.origin.machine);
    dates.insert(m.origin.date);
    commits.insert(m.origin.commit);
    loads.insert(m.origin.machine_load);
  }
  const std::string range =
      dates.size() == 1 ? *dates.begin()
                        : absl::StrCat(*dates.begin(), " to ", *dates.rbegin());
  configuration.notes = {
      {"machine", absl::StrJoin(machines, "; ")},
      {"load of the machine (average of a minute)",
       absl::StrFormat("%.2f to %.2f", *loads.begin(), *loads.rbegin())},
      {"date", range},
      {"commit", absl::StrJoin(commits, ", ")}};
}

template <typename Get>
auto Distinct(const std::vector<CellReport>& cells, Get get) {
  using Value = std::decay_t<decltype(get(cells[0].cell()))>;
  std::set<Value> values;
  for (const CellReport& cell : cells) values.insert(get(cell.cell()));
  return std::vector<Value>(values.begin(), values.end());
}

}  // namespace

std::optional<double> CellReport::predicted_speedup() const {
  if (!prediction) return std::nullopt;
  return prediction->speedup;
}

double CellReport::prediction_error() const {
  if (!prediction || speedup <= 0) return 0;
  return prediction->speedup / speedup - 1;
}

double CellReport::WastedShare() const {
  const int num_tokens = measured.num_tokens;
  return num_tokens > 0
             ? static_cast<double>(measured.counts.ahead.num_wasted) /
                   num_tokens
             : 0;
}

std::vector<double> Report::rtts_ms() const {
  return Distinct(cells, [](const Cell& cell) { return cell.rtt_ms; });
}
std::vector<Load> Report::loads() const {
  return Distinct(cells, [](const Cell& cell) { return cell.load; });
}
std::vector<Drafting> Report::draftings() const {
  return Distinct(cells, [](const Cell& cell) { return cell.drafting(); });
}

const CellReport* Report::Find(const Cell& cell) const {
  const auto it = std::find_if(
      cells.begin(), cells.end(),
      [&cell](const CellReport& one) { return one.cell() == cell; });
  return it == cells.end() ? nullptr : &*it;
}

const CellReport* Report::Best(double rtt_ms, const Load& load) const {
  const CellReport* best = nullptr;
  for (const CellReport& cell : cells) {
    if (cell.cell().rtt_ms != rtt_ms || cell.cell().load != load) continue;
    if (cell.rank() > 0 && (best == nullptr || cell.rank() > best->rank())) {
      best = &cell;
    }
  }
  return best;
}

std::vector<std::string> Report::LargeDifferences() const {
  std::vector<std::string> texts;
  for (const CellReport& cell : cells) {
    if (std::abs(cell.prediction_error()) <= kLargeDifference) continue;
    const std::string range =
        cell.num_repeats > 1
            ? absl::StrFormat(" (%.2f to %.2f in %d repeats)",
                              cell.lowest_speedup, cell.highest_speedup,
                              cell.num_repeats)
            : "";
    texts.push_back(absl::StrFormat(
        "RTT %g ms, K = %s: measured %.2f%s, predicted %.2f (%+.0f %%). A "
        "round took %.2f ms, predicted %.2f; most of the difference: %s.",
        cell.cell().rtt_ms, cell.cell().drafting().ToString(), cell.speedup,
        range, cell.prediction->speedup, 100 * cell.prediction_error(),
        cell.prediction->measured_ms, cell.prediction->round_ms,
        cell.prediction->largest_difference));
  }
  return texts;
}

std::vector<std::string> Report::CutShort() const {
  std::vector<std::string> names;
  for (const CellReport& cell : cells) {
    if (!cell.measured.ran_out_of_prompts) continue;
    names.push_back(absl::StrFormat("RTT %g ms, %s, K = %s", cell.cell().rtt_ms,
                                    cell.cell().load.ToString(),
                                    cell.cell().drafting().ToString()));
  }
  return names;
}

int Report::num_failures() const {
  int sum = 0;
  for (const CellReport& cell : cells) sum += cell.measured.num_failures;
  return sum;
}

bool Report::HasAhead() const {
  return std::any_of(cells.begin(), cells.end(), [](const CellReport& cell) {
    return cell.measured.counts.ahead.num_asked() > 0;
  });
}

std::string Report::BrokenAssumption() const {
  if (!configuration.shares_processors || !HasAhead()) return "";
  return "The formula has drafter and verifier on processors of their own. "
         "Here "
         "they share one machine's, so that what is drafted ahead takes time "
         "from the verifier: its time, and how long drafts made ahead were "
         "waited for, are those of the lowest round trip.";
}

std::string AchievedRtt(const Measurement& measured) {
  if (!measured.verifier_rtt_ms) return "";
  std::string text = absl::StrFormat("%.2f", *measured.verifier_rtt_ms);
  // Both are met within this, where they are the same.
  const double nominal_ms = measured.point.cell.rtt_ms;
  const double drafter_ms = measured.drafter_rtt_ms.value_or(nominal_ms);
  if (std::abs(drafter_ms - nominal_ms) > 0.05 * nominal_ms + 0.3) {
    absl::StrAppendFormat(&text, ", drafter %.2f", drafter_ms);
  }
  return text;
}

Report MakeReport(const Configuration& configuration,
                  absl::Span<const Measurement> measurements) {
  std::map<Cell, Repeats> by_cell;
  for (const Measurement& m : measurements) {
    by_cell[m.point.cell].push_back(m);
  }
  Report report = {.configuration = configuration};
  AddOrigins(measurements, report.configuration);
  for (const auto& [cell, repeats] : by_cell) {
    report.cells.push_back(MakeCell(repeats));
  }
  if (!report.cells.empty()) AddPredictions(report);
  return report;
}

}  // namespace outrider::bench
