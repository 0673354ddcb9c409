// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_FADING_MEAN_H_
#define OUTRIDER_COORDINATOR_PEERS_FADING_MEAN_H_

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

#endif  // OUTRIDER_COORDINATOR_PEERS_FADING_MEAN_H_
