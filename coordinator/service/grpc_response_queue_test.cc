// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/grpc_response_queue.h"

#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

v1::GenerateResponse OfTokens(int num_tokens) {
  v1::GenerateResponse response;
  for (int i = 0; i < num_tokens; ++i) response.add_tokens();
  return response;
}
v1::GenerateResponse OfBytes(size_t num_bytes) {
  v1::GenerateResponse response;
  response.mutable_finish()->set_trailing_text(std::string(num_bytes, 'x'));
  return response;
}

TEST(ResponseQueueTest, ItIsFullAt256TokensHoweverSmall) {
  ResponseQueue queue;
  queue.Push(OfTokens(255));
  EXPECT_TRUE(queue.has_room());
  queue.Push(OfTokens(1));
  EXPECT_FALSE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.has_room());
  EXPECT_EQ(queue.size(), 1u);
}

TEST(ResponseQueueTest, ItIsFullAt64KiBHoweverFewTokens) {
  ResponseQueue queue;
  queue.Push(OfBytes(65000));
  EXPECT_TRUE(queue.has_room());
  queue.Push(OfBytes(600));
  EXPECT_FALSE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace outrider
