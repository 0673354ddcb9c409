// SPDX-License-Identifier: Apache-2.0
// Part of each test program that runs kernels: its output says on what.
#include <cstdio>

#include "core/kernels/cuda/runtime.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {
namespace {

class SayDevice : public ::testing::Environment {
 public:
  void SetUp() override {
    std::printf("CUDA kernels: %s\n", DeviceName().c_str());
  }
};

const ::testing::Environment* const kSayDevice =
    ::testing::AddGlobalTestEnvironment(new SayDevice);

}  // namespace
}  // namespace outrider::kernels::cuda
