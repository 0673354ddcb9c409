// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/weights.h"

#include <memory>
#include <vector>

#include "core/cuda_model/small_model.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(WeightUploaderTest, TheHostsMemoryMayChangeOnceACallHasReturned) {
  const std::shared_ptr<Gpu> gpu = GpuUnderTest();
  auto uploader = WeightUploader::Make(gpu, kernels::cuda::Element::kBFloat16,
                                       /*staging_bytes=*/4096);
  ASSERT_TRUE(uploader.ok()) << uploader.status();
  std::vector<float> values = {1.0f, 2.0f, 3.0f};
  const auto uploaded = uploader->Floats(values);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  values.assign(3, 7.0f);
  std::vector<float> read(3);
  gpu->Download(read.data(), *uploaded, 3 * sizeof(float));
  ASSERT_EQ(gpu->Finish(), "");
  EXPECT_EQ(read, (std::vector<float>{1.0f, 2.0f, 3.0f}));
}

}  // namespace
}  // namespace outrider
