// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/cuda_model/open_gpu.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

std::string GoldenModel(const std::string& name) {
  const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
  return absl::StrCat(source == nullptr ? "." : source,
                      "/tests/golden/testdata/models/", name);
}

Checkpoint OpenGolden(const std::string& name) {
  auto checkpoint = Checkpoint::Open(GoldenModel(name));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return *std::move(checkpoint);
}

TEST(DeviceTest, CudaIsThereOrSaysWhatIsMissing) {
  const auto gpu = OpenGpu(0);
  if (gpu.ok()) {
    std::printf("a GPU is there: %s\n", (*gpu)->name().c_str());
    return;
  }
  std::printf("NO GPU: %s\n", std::string(gpu.status().message()).c_str());
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gpu.status().message()), HasSubstr("device cuda"));
  EXPECT_EQ(LoadTorchCausalLm(
                {.model_directory = GoldenModel("llama"), .device = "cuda"})
                .status(),
            gpu.status());
}

TEST(DeviceTest, ANameSaysWhichGpu) {
  EXPECT_TRUE(ParseDevice("cpu")->is_cpu());
  EXPECT_EQ(ParseDevice("cuda")->name(), "cuda:0");
  EXPECT_EQ(ParseDevice("cuda:3")->gpu, 3);
}

TEST(DeviceTest, OtherNamesAreRefused) {
  for (const char* name : {"", "CPU", "cuda:", "cuda:x", "cuda:1:2", "cuda0",
                           "mps", "cuda:-1", "cuda:99999999999"}) {
    EXPECT_EQ(ParseDevice(name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(DeviceTest, AutoLosesNothing) {
  const Device cpu, gpu = {.gpu = 0};
  using c10::ScalarType;
  const Checkpoint half = OpenGolden("mistral_fp16");
  const Checkpoint wide = OpenGolden("llama");
  const Checkpoint narrow = OpenGolden("tinyllama_tied_bf16");
  EXPECT_EQ(*ChooseDtype("auto", half, cpu), ScalarType::Float);
  EXPECT_EQ(*ChooseDtype("auto", wide, cpu), ScalarType::Float);
  EXPECT_EQ(*ChooseDtype("auto", narrow, cpu), ScalarType::BFloat16);
  EXPECT_EQ(*ChooseDtype("auto", half, gpu), ScalarType::Half);
  EXPECT_EQ(*ChooseDtype("auto", narrow, gpu), ScalarType::BFloat16);
  const auto refused = ChooseDtype("auto", wide, gpu);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("--dtype bfloat16 or float16"));
}

TEST(DeviceTest, ADtypeThatTheDeviceDoesNotHaveIsRefused) {
  const Checkpoint checkpoint = OpenGolden("llama");
  EXPECT_FALSE(ChooseDtype("float32", checkpoint, {.gpu = 0}).ok());
  const auto half = ChooseDtype("float16", checkpoint, Device());
  EXPECT_EQ(half.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(half.status().message()),
              HasSubstr("a CPU has none: give bfloat16, float32 or auto"));
  EXPECT_TRUE(ChooseDtype("float16", checkpoint, {.gpu = 0}).ok());
}

TEST(DeviceTest, TheLogSaysWhichDtypeAndWhy) {
  const Checkpoint checkpoint = OpenGolden("mistral_fp16");
  const auto logged = [&](const std::string& name) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(ChooseDtype(name, checkpoint, Device()).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged("auto"),
              HasSubstr("float32, which holds the checkpoint's F16"));
  EXPECT_THAT(logged("bfloat16"),
              HasSubstr("bfloat16 rounds the checkpoint's F16"));
  EXPECT_EQ(logged("float32"), "");
}

}  // namespace
}  // namespace outrider
