// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/shared_pass.h"

#include <cmath>

#include "coordinator/control/fade.h"

namespace outrider {
namespace {

// Means are over so many rounds of each session; what a row takes is over so
// many whose passes had another number of rows.
constexpr double kRoundsOfMeans = 16;
constexpr double kOtherRows = 32;
// Numbers of rows that are nearer to the mean than this share of it say nothing
// beside the noise; what is further off counts more, up to a bound.
constexpr double kLeastChange = 0.2;
constexpr double kMostWeightOfChange = 2;
// A pass reads the weights, however much of it the rows seem to take.
constexpr double kMostOfRows = 0.95;
// A pass that stood still says little of its rows.
constexpr double kMostOfUsualPass = 2;

}  // namespace

void SharedPass::Learn(int num_rows, double sharing, double seconds,
                       int num_sessions) {
  for (FadingMean* mean : {&sharing_, &rows_, &seconds_}) {
    mean->Fade(FadeOver(kRoundsOfMeans, num_sessions));
  }
  const double rows = sharing * num_rows;
  if (rows_.weight > 0 && seconds_.value > 0) {
    const double usual = seconds_.value * std::max(1.0, rows / rows_.value);
    seconds = std::min(seconds, kMostOfUsualPass * usual);
  }
  const bool tells_row = LearnRow(rows, seconds, num_sessions);
  const double rows_before = rows_.value;
  const double seconds_before = seconds_.value;
  sharing_.Add(sharing);
  rows_.Add(rows);
  seconds_.Add(seconds);
  if (seconds_.value <= 0) return;
  // However it seems, all rows of a pass take no more than the pass does.
  const double most = seconds_.value / rows_.value;
  per_row_.value = std::clamp(per_row_.value, -most, most);
  if (!tells_row && seconds_before > 0) {
    // What more rows do not explain is the machine, which is slower or faster
    // for all of them.
    const double of_rows = per_row_.value * (rows_.value - rows_before);
    per_row_.value *= (seconds_.value - of_rows) / seconds_before;
  }
  const double of_rows = std::clamp(
      per_row_.value * rows_.value / seconds_.value, 0.0, kMostOfRows);
  row_ = of_rows / (1 - of_rows) / rows_.value;
}

bool SharedPass::LearnRow(double rows, double seconds, int num_sessions) {
  if (rows_.weight == 0) return false;
  const double more = rows - rows_.value;
  const double change = more / rows_.value;
  if (std::abs(change) < kLeastChange) return false;
  const double weight = std::min(change * change, kMostWeightOfChange);
  per_row_.Fade(FadeOver(kOtherRows, num_sessions));
  per_row_.weight += weight;
  per_row_.value += (weight / per_row_.weight) *
                    ((seconds - seconds_.value) / more - per_row_.value);
  return true;
}

}  // namespace outrider
