// SPDX-License-Identifier: Apache-2.0
#include "core/wire/model_identity.h"

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

const ModelIdentity kModel = {
    .weights_hash = "0123456789abcdef", .dtype = "float32", .numerics = "avx2"};

TEST(ModelIdentityTest, OtherWeightsAndNumberTypesAreAnotherModelByName) {
  for (const Sameness sameness : {Sameness::kLaw, Sameness::kBits}) {
    EXPECT_THAT(CheckSame(kModel, kModel, sameness), IsOk());
    ModelIdentity other = kModel;
    other.weights_hash = "fedcba9876543210";
    EXPECT_THAT(CheckSame(kModel, other, sameness),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("weights are fedcba987654, not "
                                   "0123456789ab")));
    other = kModel;
    other.dtype = "bfloat16";
    EXPECT_THAT(CheckSame(kModel, other, sameness),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("number type is bfloat16, not float32")));
  }
}

TEST(ModelIdentityTest, OtherNumericsAreAnotherModelWhereTheTextIsPromised) {
  ModelIdentity other = kModel;
  other.numerics = "";
  EXPECT_THAT(CheckSame(kModel, other, Sameness::kLaw), IsOk());
  EXPECT_THAT(CheckSame(kModel, other, Sameness::kBits),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("kernels are unknown, not avx2")));
}

TEST(ModelIdentityTest, ItComesBackFromItsTextAndFromItsMessage) {
  EXPECT_EQ(ToText(kModel), "0123456789abcdef:float32:avx2");
  const ModelIdentity unknown = {.weights_hash = "a", .dtype = "b"};
  for (const ModelIdentity& model : {kModel, unknown}) {
    const auto parsed = ParseModelIdentity(ToText(model));
    ASSERT_THAT(parsed, IsOk());
    EXPECT_EQ(*parsed, model);
    EXPECT_EQ(FromProto(ToProto(model)), model);
  }
}

TEST(ModelIdentityTest, TextThatIsNoModelIsRefusedWithItsWords) {
  for (const char* text : {"", "0123", "0123:float32", "0:1:2:3"}) {
    EXPECT_THAT(ParseModelIdentity(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("WEIGHTS:DTYPE:NUMERICS")));
  }
}

}  // namespace
}  // namespace outrider
