// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/device.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/solo_session.h"
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

std::vector<float> Logits(const TorchCausalLmOptions& options) {
  const std::vector<TokenId> tokens = {3, 14, 15, 9, 26, 5, 35, 8};
  auto model = LoadTorchCausalLm(options);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  auto session = SoloSession::Open(**model, 64);
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  std::vector<float> all;
  int cached = 0;
  for (const int n : {5, 2, 1}) {
    const auto rows = session->Extend(
        cached, absl::MakeConstSpan(tokens).subspan(cached, n), n);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return {};
    for (int i = 0; i < n; ++i) {
      all.insert(all.end(), rows->Row(i).begin(), rows->Row(i).end());
    }
    cached += n;
  }
  return all;
}

TEST(DeviceTest, CudaGivesTheLogitsOfTheCpuOrSaysWhatIsMissing) {
  const auto device = OpenDevice("cuda");
  if (!device.ok()) {
    std::printf("GPU PART DID NOT RUN: %s\n",
                std::string(device.status().message()).c_str());
    EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(device.status().message()),
                HasSubstr("device cuda: "));
    EXPECT_EQ(LoadTorchCausalLm(
                  {.model_directory = GoldenModel("llama"), .device = "cuda"})
                  .status()
                  .code(),
              absl::StatusCode::kFailedPrecondition);
    return;
  }
  for (const char* name : {"llama", "gpt2", "qwen3", "mistral_fp16"}) {
    TorchCausalLmOptions options = {.model_directory = GoldenModel(name),
                                    .dtype = "float32"};
    const std::vector<float> on_cpu = Logits(options);
    options.device = "cuda";
    const std::vector<float> on_gpu = Logits(options);
    ASSERT_EQ(on_cpu.size(), on_gpu.size());
    for (size_t i = 0; i < on_cpu.size(); ++i) {
      ASSERT_NEAR(on_cpu[i], on_gpu[i], 2e-3) << name;
    }
  }
}

TEST(DeviceTest, AnIndexBeyondTheGpusIsRefused) {
  const auto device = OpenDevice("cuda:100");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DeviceTest, OtherNamesAreRefused) {
  for (const char* name : {"", "CPU", "cuda:", "cuda:x", "cuda:1:2", "cuda0",
                           "mps", "cuda:99999999999"}) {
    EXPECT_EQ(OpenDevice(name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(DeviceTest, AutoLosesNothingOfAFloat16) {
  for (const char* name : {"mistral_fp16", "llama"}) {
    const auto checkpoint = Checkpoint::Open(GoldenModel(name));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const auto type : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
      EXPECT_EQ(*ChooseDtype("auto", *checkpoint, c10::Device(type, 0)),
                c10::ScalarType::Float)
          << name;
    }
  }
  const auto checkpoint = Checkpoint::Open(GoldenModel("tinyllama_tied_bf16"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(
      *ChooseDtype("auto", *checkpoint, c10::Device(c10::DeviceType::CUDA, 0)),
      c10::ScalarType::BFloat16);
}

TEST(DeviceTest, TheLogSaysWhichDtypeAndWhy) {
  const auto checkpoint = Checkpoint::Open(GoldenModel("mistral_fp16"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const c10::Device cpu(c10::DeviceType::CPU);
  const auto logged = [&](const std::string& name) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(ChooseDtype(name, *checkpoint, cpu).ok());
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
