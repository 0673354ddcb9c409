// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_PACE_H_
#define OUTRIDER_COORDINATOR_CONTROL_PACE_H_

#include <algorithm>
#include <cmath>

namespace outrider {

// Seconds for a token: their mean over rounds, and how far rounds are from it
// (Welford 1962; Chan, Golub and LeVeque 1979 for two sets of rounds).
struct Pace {
  // A round that stood still counts as so many times the mean: it says little.
  static constexpr double kMostOfMean = 3;

  double weight = 0;  // rounds
  double value = 0;
  double squares = 0;  // of the distances, summed

  void Add(double observed) {
    if (weight > 0) observed = std::min(observed, kMostOfMean * value);
    weight += 1;
    const double distance = observed - value;
    value += distance / weight;
    squares += distance * (observed - value);
  }
  void Add(const Pace& other) {
    const double sum = weight + other.weight;
    if (sum == 0) return;
    const double distance = other.value - value;
    squares +=
        other.squares + distance * distance * weight * other.weight / sum;
    value += distance * other.weight / sum;
    weight = sum;
  }
  // It counts as if it had been seen in that many rounds, where it was in more.
  void KeepAtMost(double rounds) {
    if (weight <= rounds) return;
    squares *= rounds / weight;
    weight = rounds;
  }
  void Scale(double factor) {
    value *= factor;
    squares *= factor * factor;
  }
  // It is the mean's, which has to be known: the weight is above 0.
  double SquareOfError() const { return squares / (weight * weight); }
  double Error() const { return std::sqrt(SquareOfError()); }

  // Two of them differ by more than this.
  struct Margin {
    double share = 0;       // of the lesser one
    double num_errors = 0;  // standard errors, by which chance is ruled out
  };
  // Whether both are known and apart by more than that, where so many rounds at
  // a time are as one, as they share their passes.
  static bool AreApart(const Pace& a, const Pace& b, const Margin& margin,
                       int num_alike) {
    if (a.weight == 0 || b.weight == 0) return false;
    const double distance = std::abs(a.value - b.value);
    return distance > margin.share * std::min(a.value, b.value) &&
           distance * distance > margin.num_errors * margin.num_errors *
                                     std::max(1, num_alike) *
                                     (a.SquareOfError() + b.SquareOfError());
  }
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_PACE_H_
