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

TEST(ResponseQueueTest, ItIsFullAt16KiBHoweverFewTokens) {
  ResponseQueue queue;
  queue.Push(OfBytes(16000));
  EXPECT_TRUE(queue.has_room());
  queue.Push(OfBytes(1000));
  EXPECT_FALSE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.empty());
}

TEST(ResponseQueueTest, WhatWaitsComesOutInOrderAndAsItWas) {
  ResponseQueue queue;
  for (int i = 1; i <= 3; ++i) queue.Push(OfTokens(i));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(queue.front().tokens_size(), i);
    queue.Pop();
  }
  EXPECT_TRUE(queue.empty());
  queue.Push(OfTokens(4));
  EXPECT_EQ(queue.front().tokens_size(), 4);
}

TEST(ResponseQueueTest, TheOneThatIsWrittenStaysWhereItIs) {
  ResponseQueue queue;
  queue.Push(OfTokens(1));
  const v1::GenerateResponse* const first = &queue.front();
  for (int i = 0; i < 100; ++i) queue.Push(OfTokens(1));
  EXPECT_EQ(&queue.front(), first);
  EXPECT_EQ(first->tokens_size(), 1);
}

}  // namespace
}  // namespace outrider
