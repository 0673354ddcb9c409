// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/testing/status_matchers.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kVocabSize = 128256;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DraftOptions kDefaults = kGenerationDraftOptions;

DraftOptions Resolved(const DraftOverrides& overrides,
                      const DraftOptions& defaults = kDefaults,
                      int vocab_size = kVocabSize) {
  return Resolve(overrides, defaults, vocab_size).value();
}

TEST(DraftOptionsTest, EachFieldIsHeldAgainstItsRange) {
  for (const int size : {1, 32, kMaxSupportSize, kVocabSize}) {
    EXPECT_THAT(Validate({.support_size = size}, kVocabSize), IsOk());
  }
  for (const int size : {-1, 0, kMaxSupportSize + 1, kVocabSize - 1}) {
    EXPECT_THAT(Validate({.support_size = size}, kVocabSize),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.support_size")));
  }
  for (const double mass : {1e-9, 0.5, 1.0}) {
    EXPECT_THAT(Validate({.support_mass = mass}, kVocabSize), IsOk());
  }
  for (const double mass : {0.0, -0.1, 1.1, kNan}) {
    EXPECT_THAT(Validate({.support_mass = mass}, kVocabSize),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.support_mass")));
  }
  for (const double least : {0.0, 0.5, 0.999}) {
    EXPECT_THAT(Validate({.min_draft_probability = least}, kVocabSize), IsOk());
  }
  for (const double least : {-0.1, 1.0, 2.0, kNan}) {
    EXPECT_THAT(Validate({.min_draft_probability = least}, kVocabSize),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.min_draft_probability")));
  }
}

TEST(DraftOptionsTest, WhatIsNotOverriddenIsTheDefault) {
  EXPECT_EQ(Resolved({}), kDefaults);
  EXPECT_EQ(Resolved({.min_draft_probability = 0.25}).min_draft_probability,
            0.25);
  EXPECT_EQ(Resolved({.min_draft_probability = 0.25}).support_mass,
            kDefaults.support_mass);
  EXPECT_FALSE(Resolved({.round_weights = false}).round_weights);
}

TEST(DraftOptionsTest, WhoNamesOneOfSizeAndMassMeansThatOneAlone) {
  const DraftOptions by_size = Resolved({.support_size = 32});
  EXPECT_EQ(by_size.support_size, 32);
  EXPECT_EQ(by_size.support_mass, 1);
  const DraftOptions by_mass = Resolved({.support_mass = 0.5}, {});
  EXPECT_EQ(by_mass.support_size, kMaxSupportSize);
  EXPECT_EQ(by_mass.support_mass, 0.5);
  const DraftOptions by_both =
      Resolved({.support_size = 32, .support_mass = 0.5});
  EXPECT_EQ(by_both.support_size, 32);
  EXPECT_EQ(by_both.support_mass, 0.5);
}

TEST(DraftOptionsTest, NoRowIsLongerThanTheVocabulary) {
  EXPECT_EQ(Resolved({}, kDefaults, 65).support_size, 65);
  EXPECT_EQ(Resolved({}, {.support_size = 0}).support_size, kVocabSize);
  EXPECT_EQ(Resolved({}, {.support_size = 0, .support_mass = 0.5}).support_mass,
            1);
}

TEST(DraftOptionsTest, WholeRowsAreRoundedOnlyWhereSomebodyAsks) {
  EXPECT_FALSE(Resolved({.support_size = kVocabSize}).round_weights);
  EXPECT_TRUE(Resolved({.support_size = kVocabSize, .round_weights = true})
                  .round_weights);
  EXPECT_TRUE(Resolved({.support_size = 32}).round_weights);
  EXPECT_TRUE(Resolved({.support_size = kVocabSize, .support_mass = 0.5})
                  .round_weights);
}

TEST(DraftOptionsTest, WhatIsResolvedIsValid) {
  EXPECT_THAT(Resolve({.support_size = 0}, kDefaults, kVocabSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Resolve({.support_mass = kNan}, kDefaults, kVocabSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace outrider
