// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/kv_blocks.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

ModelConfig SmallModel() {
  ModelConfig config;
  config.num_layers = 2;
  config.num_kv_heads = 3;
  config.head_dim = 4;
  return config;
}

TEST(KvBlocksTest, ABlockTakesItsKeysAndValuesInAllLayers) {
  KvBlocks floats(SmallModel(), at::kFloat);
  EXPECT_EQ(floats.block_bytes(), 2 * 2 * kKvBlockLength * 3 * 4 * 4);
  KvBlocks halves(SmallModel(), at::kBFloat16);
  EXPECT_EQ(halves.block_bytes(), floats.block_bytes() / 2);
  halves.Allocate(5);
  int64_t num_bytes = 0;
  for (int i = 0; i < 2; ++i) {
    const LayerKv& layer = halves.layer(i);
    EXPECT_EQ(layer.keys.sizes(), at::IntArrayRef({5, kKvBlockLength, 3, 4}));
    EXPECT_TRUE(layer.keys.is_contiguous() && layer.values.is_contiguous());
    num_bytes += static_cast<int64_t>(layer.keys.nbytes());
    num_bytes += static_cast<int64_t>(layer.values.nbytes());
  }
  EXPECT_EQ(num_bytes, 5 * halves.block_bytes());
}

// What this process takes, in bytes.
int64_t ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(KvBlocksTest, BlocksThatNobodyWroteTakeNoMemory) {
  ModelConfig config;
  config.num_layers = 10;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  KvBlocks kv(config, at::kBFloat16);
  const int64_t before = ResidentMemory();
  kv.Allocate(4000);  // 328 MB
  EXPECT_LT(ResidentMemory() - before, 100 * kv.block_bytes());
  for (int block = 0; block < 400; ++block) {
    for (int i = 0; i < 10; ++i) {
      kv.layer(i).keys[block].zero_();
      kv.layer(i).values[block].zero_();
    }
  }
  EXPECT_LT(ResidentMemory() - before, 500 * kv.block_bytes());
}

}  // namespace
}  // namespace outrider
