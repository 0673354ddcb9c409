// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_FADING_MEAN_H_
#define OUTRIDER_COORDINATOR_CONTROL_FADING_MEAN_H_

#include <algorithm>

namespace outrider {

// A mean in which each observation counts less, the older it is.
struct FadingMean {
  double weight = 0;  // of what it was made from; an observation has 1
  double value = 0;
  void Add(double observed) {
    weight += 1;
    value += (observed - value) / weight;
  }
  void Fade(double share, double least = 0) {
    if (weight > least) weight *= share;
  }
  void KeepAtMost(double most) { weight = std::min(weight, most); }
};

// The quotient of two such means: of all that was seen of the one by all that
// was seen of the other, whatever part each observation had in either.
struct FadingQuotient {
  FadingMean dividend = {};
  FadingMean divisor = {};
  void Add(double of_dividend, double of_divisor) {
    dividend.Add(of_dividend);
    divisor.Add(of_divisor);
  }
  void Fade(double share) {
    dividend.Fade(share);
    divisor.Fade(share);
  }
  // 0 before anything was seen.
  double Value() const {
    return divisor.value > 0 ? dividend.value / divisor.value : 0;
  }
};

// How much more time each more of something takes; never less. Begins at none,
// as if that had been seen once.
struct FadingSlope {
  double squares = 1;
  double products = 0;
  // Both from where they are on average.
  void Add(double distance, double seconds, double fade) {
    squares = fade * squares + distance * distance;
    products = fade * products + distance * seconds;
  }
  double PerUnit() const { return std::max(0.0, products / squares); }
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_FADING_MEAN_H_
