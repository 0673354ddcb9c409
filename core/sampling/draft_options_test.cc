// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/draft_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/special_values.h"
#include "core/testing/status_matchers.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::kNan;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kLlamaVocabSize = 128256;
constexpr DraftOptions kDefaults = kGenerationDraftOptions;

DraftOptions Resolved(const DraftOverrides& overrides,
                      const DraftOptions& defaults = kDefaults,
                      int vocab_size = kLlamaVocabSize) {
  return Resolve(overrides, defaults, vocab_size).value();
}

TEST(DraftOptionsTest, EachFieldIsHeldAgainstItsRange) {
  for (const int size : {1, 32, kMaxSupportSize, kLlamaVocabSize}) {
    EXPECT_THAT(Validate({.support_size = size}, kLlamaVocabSize), IsOk());
  }
  for (const int size : {-1, 0, kMaxSupportSize + 1, kLlamaVocabSize - 1}) {
    EXPECT_THAT(Validate({.support_size = size}, kLlamaVocabSize),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.support_size")));
  }
  for (const double mass : {1e-9, 0.5, 1.0}) {
    EXPECT_THAT(Validate({.support_mass = mass}, kLlamaVocabSize), IsOk());
  }
  for (const double mass : {0.0, -0.1, 1.1, double{kNan}}) {
    EXPECT_THAT(Validate({.support_mass = mass}, kLlamaVocabSize),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("draft_options.support_mass")));
  }
  for (const double least : {0.0, 0.5, 0.999}) {
    EXPECT_THAT(Validate({.min_draft_probability = least}, kLlamaVocabSize),
                IsOk());
  }
  for (const double least : {-0.1, 1.0, 2.0, double{kNan}}) {
    EXPECT_THAT(Validate({.min_draft_probability = least}, kLlamaVocabSize),
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
  EXPECT_EQ(Resolved({}, {.support_size = 0}).support_size, kLlamaVocabSize);
  EXPECT_EQ(Resolved({}, {.support_size = 0, .support_mass = 0.5}).support_mass,
            1);
}

TEST(DraftOptionsTest, WholeRowsAreRoundedOnlyWhereSomebodyAsks) {
  EXPECT_FALSE(Resolved({.support_size = kLlamaVocabSize}).round_weights);
  EXPECT_TRUE(Resolved({.support_size = kLlamaVocabSize, .round_weights = true})
                  .round_weights);
  EXPECT_TRUE(Resolved({.support_size = 32}).round_weights);
  EXPECT_TRUE(Resolved({.support_size = kLlamaVocabSize, .support_mass = 0.5})
                  .round_weights);
}

TEST(DraftOptionsTest, WhatIsResolvedIsValid) {
  EXPECT_THAT(Resolve({.support_size = 0}, kDefaults, kLlamaVocabSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Resolve({.support_mass = kNan}, kDefaults, kLlamaVocabSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace outrider
