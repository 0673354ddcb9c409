// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/open_gpu.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(int index, const std::string& library) {
  const auto gpu = OpenGpu(index, library);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(gpu.status().message());
}

TEST(OpenGpuTest, ALibraryOfKernelsIsOpenedAtRunTime) {
  const auto gpu = OpenGpu(0, OUTRIDER_EMULATED_GPU);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ((*gpu)->numerics(), "cuda_emulated");
}

TEST(OpenGpuTest, AMissingLibraryIsNamed) {
  EXPECT_THAT(MessageOf(0, "libno_such_kernels.so"),
              HasSubstr("lib/libno_such_kernels.so: cannot open"));
}

TEST(OpenGpuTest, ALibraryOfAnotherVersionIsNamed) {
  EXPECT_THAT(MessageOf(0, "libm.so.6"),
              HasSubstr("libm.so.6 is of another version"));
}

TEST(OpenGpuTest, AGpuThatIsNotThereIsRefused) {
  EXPECT_THAT(
      MessageOf(7, OUTRIDER_EMULATED_GPU),
      AllOf(HasSubstr("device cuda:7: no usable NVIDIA driver"),
            HasSubstr("no such GPU on this machine: there are 1 GPUs")));
}

}  // namespace
}  // namespace outrider
