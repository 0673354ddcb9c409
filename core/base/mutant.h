// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_MUTANT_H_
#define OUTRIDER_CORE_BASE_MUTANT_H_

// Exactness is guarded by mutants: small, named mistakes in the production
// path, each of which the tests must catch (tests/exactness/mutant_cases.h).
// Those that fit into one expression are switches; the test builds the others
// into the seams around the path (coins, clients, rule, cache).
// OUTRIDER_MUTANT(id, right, wrong) is `right` in every build but the mutants
// test's own, where the mistake can be switched on by name.
#ifdef OUTRIDER_MUTANTS

namespace outrider {

enum class Mutant {
  kNone,
  kM2,
  kM3,
  kM14,
  kS1,
  kS7,
  kT3,
  kC1,
  kP1,
  kP2,
  kP4,
  kP5,
  kB1,
  kB2,
  kB3,
  kE1,
  kE2,
  kE3,
  kE4,
  kE5,
  kE6,
  kE7,
  kA1,
  kH1,
  kH2,
  kH3,
  kH4,
  kD1,
  kD2,
  kD3,
  kD4,
  kG1,
  kG2,
  kG3,
  kR1,
  kR2,
  kR3
};
inline Mutant active_mutant = Mutant::kNone;

}  // namespace outrider

#define OUTRIDER_MUTANT(id, right, wrong) \
  (::outrider::active_mutant == ::outrider::Mutant::k##id ? (wrong) : (right))

#else

#define OUTRIDER_MUTANT(id, right, wrong) (right)

#endif

#endif  // OUTRIDER_CORE_BASE_MUTANT_H_
