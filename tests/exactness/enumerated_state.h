// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_ENUMERATED_STATE_H_
#define OUTRIDER_TESTS_EXACTNESS_ENUMERATED_STATE_H_

#include <cstddef>
#include <vector>

namespace outrider::testing {

// Where an enumeration stands between two rounds: how to get there again, and
// how probable it is.
struct EnumeratedState {
  double probability = 0;
  int num_rounds = 0;
  std::vector<size_t> path = {};  // what chance chose
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_ENUMERATED_STATE_H_
