// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda_model/open_gpu.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
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

// Matrices of these dtypes, beside a vector of float32, as norms may be.
Checkpoint OpenMatricesOf(const std::vector<std::string>& dtypes) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "device_test_matrices";
  std::filesystem::create_directories(directory);
  std::string header =
      R"({"norm":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  size_t end = 4;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const size_t begin = end;
    end += dtypes[i] == "F32" ? 4 : 2;
    absl::StrAppend(&header, ",\"", i, R"(":{"dtype":")", dtypes[i],
                    R"(","shape":[1,1],"data_offsets":[)", begin, ",", end,
                    "]}");
  }
  header += "}";
  const uint64_t length = header.size();
  std::ofstream(directory / "model.safetensors", std::ios::binary)
          .write(reinterpret_cast<const char*>(&length), sizeof length)
      << header << std::string(end, '\0');
  auto checkpoint = Checkpoint::Open(directory.string());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::filesystem::remove_all(directory);
  return *std::move(checkpoint);
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

TEST(DeviceTest, AutoSeesEveryMatrixAndNothingElse) {
  using c10::ScalarType;
  const Device cpu, gpu = {.gpu = 0};
  const Checkpoint narrow = OpenMatricesOf({"BF16", "BF16"});
  EXPECT_EQ(*ChooseDtype("auto", narrow, cpu), ScalarType::BFloat16);
  EXPECT_EQ(*ChooseDtype("auto", narrow, gpu), ScalarType::BFloat16);
  EXPECT_EQ(*ChooseDtype("auto", OpenMatricesOf({"F16", "F16"}), gpu),
            ScalarType::Half);
  // The other ones came first by name, and hid the second.
  const std::vector<std::vector<std::string>> mixtures = {
      {"F16", "F32"}, {"F16", "BF16"}, {"BF16", "F16"}, {"BF16", "F32"}};
  for (const std::vector<std::string>& dtypes : mixtures) {
    const Checkpoint mixed = OpenMatricesOf(dtypes);
    EXPECT_EQ(*ChooseDtype("auto", mixed, cpu), ScalarType::Float);
    const auto refused = ChooseDtype("auto", mixed, gpu);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument)
        << dtypes[0] << " and " << dtypes[1];
    EXPECT_THAT(std::string(refused.status().message()),
                AllOf(HasSubstr(dtypes[0]), HasSubstr(dtypes[1]),
                      HasSubstr("--dtype bfloat16 or float16")));
  }
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
  const auto logged = [](const std::string& name, const char* model,
                         const Device& device) {
    const Checkpoint checkpoint = OpenGolden(model);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(ChooseDtype(name, checkpoint, device).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  const Device cpu, gpu = {.gpu = 0};
  constexpr char kHalf[] = "mistral_fp16", kWide[] = "llama",
                 kNarrow[] = "tinyllama_tied_bf16";
  EXPECT_THAT(logged("auto", kHalf, cpu),
              HasSubstr("float32, which holds the checkpoint's F16"));
  EXPECT_EQ(logged("float32", kHalf, cpu), "");

  // A bfloat16 has fewer bits than a float16, which has the smaller range.
  for (const Device& device : {cpu, gpu}) {
    EXPECT_THAT(logged("bfloat16", kHalf, device),
                HasSubstr("bfloat16 does not hold all numbers of the "
                          "checkpoint's F16"));
    EXPECT_THAT(logged("bfloat16", kWide, device), HasSubstr("F32"));
    EXPECT_EQ(logged("bfloat16", kNarrow, device), "");
  }
  EXPECT_THAT(logged("float16", kWide, gpu),
              HasSubstr("float16 does not hold all numbers of the "
                        "checkpoint's F32"));
  EXPECT_THAT(logged("float16", kNarrow, gpu), HasSubstr("BF16"));
  EXPECT_EQ(logged("float16", kHalf, gpu), "");
}

}  // namespace
}  // namespace outrider
