// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/open_torch_model.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

std::string DemoDraft() {
  return absl::StrCat(std::getenv("OUTRIDER_SOURCE_DIR"), "/models/demo-draft");
}

TEST(OpenTorchModelTest, AModelIsReadByTheLibraryBesideTheProgram) {
  EXPECT_THAT(CheckTorchModel({.model_directory = DemoDraft()}), IsOk());
  const auto model = OpenTorchCausalLm({.model_directory = DemoDraft()});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ((*model)->info().name, "demo-draft");
  EXPECT_EQ((*model)->info().vocab_size, 4096);
}

TEST(OpenTorchModelTest, WhatItRefusesIsSaid) {
  EXPECT_THAT(OpenTorchCausalLm({.model_directory = "/no/such/model"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
}

TEST(OpenTorchModelTest, AMissingLibraryIsNamed) {
  EXPECT_THAT(OpenTorchCausalLmBy("libno_such_torch.so", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("lib/libno_such_torch.so: cannot open"),
                             HasSubstr("beside the program's folder"))));
}

TEST(OpenTorchModelTest, ALibraryOfAnotherVersionIsNamed) {
  EXPECT_THAT(OpenTorchCausalLmBy("libm.so.6", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("libm.so.6 is of another version")));
}

}  // namespace
}  // namespace outrider
