// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_ENUMERATION_H_
#define OUTRIDER_TESTS_EXACTNESS_ENUMERATION_H_

#include <cstdint>
#include <string>

#include "tests/exactness/plain_decoder.h"
#include "tests/exactness/toy_cluster.h"
#include "tests/exactness/toy_model.h"

namespace outrider::testing {

struct Enumeration {
  Law law;                 // of the first `length` tokens
  int64_t num_leaves = 0;  // rounds run to their end, one per branch
  int num_misses = 0;      // over all leaves, both nodes
  double expected_accepted = 0;
  double expected_drafted = 0;
  double expected_hits = 0;  // rounds whose drafts were made ahead
  std::string problem;       // a round that failed, a coin that was misused
};

// The exact joint law of what the production round emits: every branch that
// chance can take, round by round. Equal states (text, both caches, both
// mirrors) merge between rounds, however many there have been where these go on
// alike; not where coins are shared over rounds.
Enumeration Enumerate(const ClusterConfig& config, const ToyModel& model,
                      int length);

struct Difference {
  double max_difference = 0;
  double total_variation = 0;
  double mass_error = 0;       // |mass - 1|
  double impossible_mass = 0;  // on sequences that `right` excludes
};
Difference Compare(const Law& law, const Law& right);
// The law of the first token alone.
Law FirstToken(const Law& law);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_ENUMERATION_H_
