// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_VARYING_LENGTH_H_
#define OUTRIDER_TESTS_SIMULATION_VARYING_LENGTH_H_

#include <algorithm>
#include <cstdint>

#include "coordinator/round/draft_length_policy.h"
#include "tests/simulation/fault.h"

namespace outrider::testing {

// Another K each round, 0 included.
class VaryingLength final : public DraftLengthPolicy {
 public:
  explicit VaryingLength(uint64_t seed) : seed_(seed) {}
  int NextDraftLength(const Session& session) override {
    const int k = static_cast<int>(HashOf(seed_, ++num_rounds_) % 6);
    return std::min(k, session.MaxDraftLength());
  }

 private:
  const uint64_t seed_;
  uint64_t num_rounds_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_VARYING_LENGTH_H_
