// SPDX-License-Identifier: Apache-2.0
#include "core/base/open_library.h"

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

TEST(OpenLibraryTest, AFunctionOfALibraryIsFoundByItsName) {
  const auto found =
      OpenLibrary("libm.so.6", "floor", LookFirst::kWhereSystemDoes);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(*found)(2.5), 2);
}

TEST(OpenLibraryTest, WithoutThatFunctionItIsOfAnotherVersion) {
  EXPECT_THAT(OpenLibrary("libm.so.6", "no_such", LookFirst::kWhereSystemDoes),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("libm.so.6 is of another version")));
}

// One of them may be there, and lack what it needs.
TEST(OpenLibraryTest, WhatTheLoaderSaidOfEachPlaceIsTold) {
  for (const LookFirst first :
       {LookFirst::kWhereSystemDoes, LookFirst::kBesideProgram}) {
    EXPECT_THAT(OpenLibrary("libno_such.so", "f", first),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("/lib/libno_such.so: cannot open"),
                               HasSubstr("libno_such.so: cannot open"),
                               HasSubstr("; "))));
  }
  EXPECT_THAT(OpenLibrary("/no/such.so", "f", LookFirst::kBesideProgram),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("/no/such.so"), Not(HasSubstr("; ")))));
}

}  // namespace
}  // namespace outrider
