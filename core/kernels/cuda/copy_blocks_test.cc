// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/copy_blocks.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/kernels/cuda/device_array.h"
#include "core/kernels/cuda/emulation/block.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider::kernels::cuda {
namespace {

using ::testing::ElementsAreArray;

constexpr int kNumArrays = 6;
constexpr int kPoolBlocks = 9;
// Of the largest one every thread copies several times, the last of them not.
constexpr int kSizesOfBlocks[] = {16, 4096, 9 * 1024 + 16};

class CudaCopyBlocksTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CudaCopyBlocksTest() { emulation::SetSeed(GetParam()); }
};

struct Arrays {
  explicit Arrays(int size)
      : block_bytes(size),
        // Those of a pool are followed by others, which nobody may touch.
        array_bytes(kPoolBlocks * static_cast<size_t>(block_bytes) + 32),
        bytes(kNumArrays * array_bytes / sizeof(uint32_t)) {
    std::iota(bytes.begin(), bytes.end(), 1u);
  }

  // What they hold once these were copied.
  std::vector<uint32_t> Copied(const CopyBlocksArgs& args) const {
    std::vector<uint32_t> copied = bytes;
    const size_t words = static_cast<size_t>(block_bytes) / sizeof(uint32_t);
    for (size_t array = 0; array < kNumArrays; ++array) {
      const size_t first = array * array_bytes / sizeof(uint32_t);
      for (int i = 0; i < args.num_pairs; ++i) {
        const auto [from, to] = args.pairs[i];
        std::copy_n(
            bytes.begin() + static_cast<ptrdiff_t>(first + from * words), words,
            copied.begin() + static_cast<ptrdiff_t>(first + to * words));
      }
    }
    return copied;
  }

  const int block_bytes;
  const size_t array_bytes;
  std::vector<uint32_t> bytes;
};

TEST_P(CudaCopyBlocksTest, EachArrayHasItsOwnBlocksCopied) {
  for (const int block_bytes : kSizesOfBlocks) {
    const Arrays arrays(block_bytes);
    const DeviceArray<uint32_t> memory(arrays.bytes);
    // One block goes to two others, and the last one to the first.
    const CopyBlocksArgs args = {.arrays = memory.data(),
                                 .num_arrays = kNumArrays,
                                 .array_bytes = arrays.array_bytes,
                                 .block_bytes = block_bytes,
                                 .num_pairs = 4,
                                 .pairs = {{1, 4}, {8, 0}, {1, 7}, {3, 2}}};
    CopyBlocks(args, nullptr);
    EXPECT_THAT(memory.Read(), ElementsAreArray(arrays.Copied(args)));
  }
}

TEST_P(CudaCopyBlocksTest, NoPairsAreNoLaunch) {
  const Arrays arrays(16);
  const DeviceArray<uint32_t> memory(arrays.bytes);
  CopyBlocks({.arrays = memory.data(),
              .num_arrays = kNumArrays,
              .array_bytes = arrays.array_bytes,
              .block_bytes = 16},
             nullptr);
  EXPECT_THAT(memory.Read(), ElementsAreArray(arrays.bytes));
}

INSTANTIATE_TEST_SUITE_P(All, CudaCopyBlocksTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace outrider::kernels::cuda
