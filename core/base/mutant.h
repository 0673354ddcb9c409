// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_MUTANT_H_
#define OUTRIDER_CORE_BASE_MUTANT_H_

// Exactness is guarded by mutants: small, named mistakes in the production
// path, each of which the tests must catch (tests/exactness/mutants_test.cc).
// OUTRIDER_MUTANT(id, right, wrong) is `right` in every build but the mutants
// test's own, where the mistake can be switched on by name.
#ifdef OUTRIDER_MUTANTS

namespace outrider {

enum class Mutant {
  kNone,
  kM1,
  kM2,
  kM3,
  kM4,
  kM5,
  kM6,
  kM7,
  kM8,
  kM9,
  kM10,
  kM11,
  kM12,
  kM13,
  kM14,
  kM15,
  kM16,
  kM17,
  kM18,
  kM19,
  kS1,
  kS2,
  kS3,
  kS4,
  kS5,
  kS6,
  kS7,
  kT1,
  kT2,
  kT4,
  kC1,
  kC2,
};
inline Mutant active_mutant = Mutant::kNone;

}  // namespace outrider

#define OUTRIDER_MUTANT(id, right, wrong) \
  (::outrider::active_mutant == ::outrider::Mutant::k##id ? (wrong) : (right))

#else

#define OUTRIDER_MUTANT(id, right, wrong) (right)

#endif

#endif  // OUTRIDER_CORE_BASE_MUTANT_H_
