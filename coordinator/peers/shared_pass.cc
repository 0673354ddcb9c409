// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peers/shared_pass.h"

#include <cmath>

#include "coordinator/peers/fade.h"

namespace outrider {
namespace {

// Means are over so many rounds of each session; what a row takes is over so
// many whose passes had another number of rows.
constexpr double kRounds = 16;
constexpr double kOtherRows = 32;
// Numbers of rows that are nearer to the mean than this share of it say nothing
// beside the noise; what is further off counts more, up to a bound.
constexpr double kLeastChange = 0.2;
constexpr double kMostWeight = 2;
// A pass reads the weights, however much of it the rows seem to take.
constexpr double kMostOfRows = 0.95;

}  // namespace

void SharedPass::Learn(int num_rows, double sharing, double seconds,
                       int num_sessions) {
  for (FadingMean* mean : {&sharing_, &rows_, &seconds_}) {
    mean->Fade(FadeOver(kRounds, num_sessions));
  }
  const double rows = sharing * num_rows;
  const bool tells_row = LearnRow(rows, seconds, num_sessions);
  const double rows_before = rows_.value;
  const double seconds_before = seconds_.value;
  sharing_.Add(sharing);
  rows_.Add(rows);
  seconds_.Add(seconds);
  if (seconds_.value <= 0) return;
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
  const double weight = std::min(change * change, kMostWeight);
  per_row_.Fade(FadeOver(kOtherRows, num_sessions));
  per_row_.weight += weight;
  per_row_.value += (weight / per_row_.weight) *
                    ((seconds - seconds_.value) / more - per_row_.value);
  return true;
}

}  // namespace outrider
