// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_MUTANT_CASES_H_
#define OUTRIDER_TESTS_EXACTNESS_MUTANT_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "core/base/mutant.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/sabotage.h"

namespace outrider::testing::mutants {

using Reuse = EnumeratingSource::Reuse;

inline constexpr int kLength = 4;

// A plausible mistake, and its figures: total variations of the joint law of
// the first tokens on the toy model. Who changes the engine so that they move
// has changed what it draws.
struct MutantCase {
  std::string id;
  // Joint total variation with K = 3 and K = 2; 0: not run (too many leaves).
  double figure_k3 = 0;
  double figure_k2 = 0;
  Mutant mutant = Mutant::kNone;
  Sabotage sabotage = {};
  bool first_token_is_right = false;  // so a test of one token would miss it
  int support_size = 0;
  bool round_weights = false;
  std::vector<TokenId> eos_ids = {};
  Reuse reuse = Reuse::kRefuse;
  RuleKind rule = RuleKind::kRejection;
  ReplyFormat format = ReplyFormat::kFull;
  int length = kLength;
};
inline void PrintTo(const MutantCase& mutant_case, std::ostream* os) {
  *os << mutant_case.id;
}

// One family for each part of an engine that may be wrong.
std::vector<MutantCase> MutantsOfDraft();
std::vector<MutantCase> MutantsOfRule();
std::vector<MutantCase> MutantsOfCache();
std::vector<MutantCase> MutantsOfTail();
std::vector<MutantCase> MutantsOfBlock();
std::vector<MutantCase> MutantsOfEnd();

}  // namespace outrider::testing::mutants

#endif  // OUTRIDER_TESTS_EXACTNESS_MUTANT_CASES_H_
