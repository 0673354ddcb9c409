// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_SCOPED_MUTANT_H_
#define OUTRIDER_TESTS_EXACTNESS_SCOPED_MUTANT_H_

#include "core/base/mutant.h"

namespace outrider::testing {

// Switches a mutant on for as long as it lives. Builds with OUTRIDER_MUTANTS
// have them.
class ScopedMutant {
 public:
  explicit ScopedMutant(Mutant mutant) { active_mutant = mutant; }
  ~ScopedMutant() { active_mutant = Mutant::kNone; }
  ScopedMutant(const ScopedMutant&) = delete;
  ScopedMutant& operator=(const ScopedMutant&) = delete;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_SCOPED_MUTANT_H_
