// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/kv_cache.h"

#include <ATen/ATen.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

ModelConfig SmallModel() {
  ModelConfig config;
  config.num_layers = 2;
  config.num_kv_heads = 3;
  config.head_dim = 4;
  config.context_length = 100;
  return config;
}

SessionId Session(uint8_t number) {
  SessionId id;
  id.bytes[0] = number;
  return id;
}

TEST(KvCacheTest, GrowingKeepsTheRowsOfTheTokensThatStay) {
  KvCache cache(SmallModel(), {});
  SessionCache* session = *cache.Reserve(Session(1), 0, 10);
  session->length = 10;
  for (int layer = 0; layer < 2; ++layer) {
    session->keys[layer].fill_(1.0f + layer);
    session->values[layer].fill_(5.0f + layer);
  }
  session = *cache.Reserve(Session(1), 7, 60);
  EXPECT_EQ(session->length, 7);
  EXPECT_GE(session->capacity, 60);
  for (int layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(session->keys[layer].sizes(),
              at::IntArrayRef({session->capacity, 3, 4}));
    EXPECT_TRUE(session->keys[layer].is_contiguous());
    EXPECT_EQ(session->keys[layer].narrow(0, 0, 7).sum().item<float>(),
              7 * 12 * (1.0f + layer));
    EXPECT_EQ(session->values[layer].narrow(0, 0, 7).sum().item<float>(),
              7 * 12 * (5.0f + layer));
  }
}

TEST(KvCacheTest, CuttingIsALengthAndMovesNothing) {
  KvCache cache(SmallModel(), {});
  SessionCache* session = *cache.Reserve(Session(1), 0, 10);
  session->length = 10;
  const void* before = session->keys[0].const_data_ptr();
  session = *cache.Reserve(Session(1), 3, 5);
  EXPECT_EQ(session->length, 3);
  EXPECT_EQ(session->keys[0].const_data_ptr(), before);
}

TEST(KvCacheTest, TokenByTokenGrowthAllocatesRarely) {
  KvCache cache(SmallModel(), {});
  const void* last = nullptr;
  int num_allocations = 0;
  for (int length = 1; length <= 100; ++length) {
    SessionCache* session = *cache.Reserve(Session(1), length - 1, length);
    session->length = length;
    const void* now = session->keys[0].const_data_ptr();
    num_allocations += now != last;
    last = now;
  }
  EXPECT_LE(num_allocations, 4);
  EXPECT_EQ(cache.num_cached_tokens(), 100);  // never beyond the context
}

TEST(KvCacheTest, TheBoundCountsAllocatedRowsAndReleaseGivesThemBack) {
  KvCache cache(SmallModel(), {.max_cached_tokens = 40});
  ASSERT_TRUE(cache.Reserve(Session(1), 0, 1).ok());
  ASSERT_TRUE(cache.Reserve(Session(2), 0, 20).ok());
  EXPECT_LE(cache.num_cached_tokens(), 40);
  EXPECT_EQ(cache.Reserve(Session(3), 0, 30).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cache.Length(Session(3)), 0);
  cache.Release(Session(2));
  cache.Release(Session(1));
  EXPECT_EQ(cache.num_cached_tokens(), 0);
  EXPECT_TRUE(cache.Reserve(Session(3), 0, 40).ok());
}

}  // namespace
}  // namespace outrider
