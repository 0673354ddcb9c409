// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/law_case.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

// A case of more takes longer than what it shows is worth.
constexpr int64_t kMaxLeaves = 300000;

}  // namespace

const ToyModel& FourWords() {
  static const ToyModel model(4, DrafterKind::kCorrelated);
  return model;
}

std::string Describe(const LawCase& c) {
  return absl::StrCat(
      "V ", c.vocab_size, ", drafter ", static_cast<int>(c.drafter), ", T ",
      c.config.sampling.temperature, ", top-k ", c.config.sampling.top_k,
      ", top-p ", c.config.sampling.top_p, ", N ",
      c.config.drafting.support_size.value_or(0), ", format ",
      static_cast<int>(c.config.reply_format), ", K ",
      absl::StrJoin(c.config.draft_lengths, "/"), ", L ", c.length, ", eos ",
      absl::StrJoin(c.config.eos_ids, "/"), ", deliveries ",
      c.config.num_deliveries);
}

Difference ExpectLaw(const Enumeration& enumeration, const Law& plain) {
  const Difference difference = Compare(enumeration.law, plain);
  EXPECT_EQ(enumeration.problem, "");
  EXPECT_LE(difference.max_difference, kTolerance);
  EXPECT_LE(difference.mass_error, kTolerance);
  EXPECT_EQ(difference.impossible_mass, 0);
  return difference;
}

LawCoverage::~LawCoverage() {
  std::cout << num_cases_ << " cases, " << num_leaves_
            << " leaves, largest difference " << max_difference_ << "\n";
}

Enumeration LawCoverage::Expect(const LawCase& c) {
  SCOPED_TRACE(Describe(c));
  const ToyModel model(c.vocab_size, c.drafter);
  Enumeration result = Enumerate(c.config, model, c.length);
  const Difference difference =
      ExpectLaw(result, PlainLaw(model, c.config.sampling, {kToyPrompt},
                                 c.length, c.config.eos_ids));
  EXPECT_EQ(result.num_misses, 0);
  EXPECT_LE(result.num_leaves, kMaxLeaves);
  ++num_cases_;
  num_leaves_ += result.num_leaves;
  max_difference_ = std::max(max_difference_, difference.max_difference);
  return result;
}

}  // namespace outrider::testing
