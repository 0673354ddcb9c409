// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/grpc_response_queue.h"

#include <string>

#include "gtest/gtest.h"

namespace outrider {
namespace {

EncodedResponse Of(size_t num_bytes, int num_tokens) {
  return {.bytes = std::string(num_bytes, 'x'), .num_tokens = num_tokens};
}

TEST(ResponseQueueTest, ItIsFullAt256TokensHoweverSmall) {
  ResponseQueue queue;
  queue.Push(Of(/*num_bytes=*/1, /*num_tokens=*/255));
  EXPECT_TRUE(queue.has_room());
  queue.Push(Of(/*num_bytes=*/1, /*num_tokens=*/1));
  EXPECT_FALSE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.has_room());
  EXPECT_EQ(queue.size(), 1u);
}

TEST(ResponseQueueTest, ItIsFullAt8KiBHoweverFewTokens) {
  ResponseQueue queue;
  queue.Push(Of(/*num_bytes=*/8000, /*num_tokens=*/0));
  EXPECT_TRUE(queue.has_room());
  queue.Push(Of(/*num_bytes=*/200, /*num_tokens=*/0));
  EXPECT_FALSE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.has_room());
  queue.Pop();
  EXPECT_TRUE(queue.empty());
}

TEST(ResponseQueueTest, ShortMessagesCountWithTheirPlaces) {
  ResponseQueue queue;
  for (int i = 0; i < 205; ++i)
    queue.Push(Of(/*num_bytes=*/1, /*num_tokens=*/0));
  EXPECT_FALSE(queue.has_room());
}

TEST(ResponseQueueTest, WhatWaitsComesOutInOrder) {
  ResponseQueue queue;
  for (int i = 1; i <= 3; ++i)
    queue.Push(Of(/*num_bytes=*/i, /*num_tokens=*/1));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(queue.front().size(), static_cast<size_t>(i));
    queue.Pop();
  }
  EXPECT_TRUE(queue.empty());
}

TEST(ResponseQueueTest, TheOneThatIsWrittenStaysWhereItIs) {
  ResponseQueue queue;
  queue.Push(Of(/*num_bytes=*/7, /*num_tokens=*/1));
  const std::string* const first = &queue.front();
  for (int i = 0; i < 100; ++i)
    queue.Push(Of(/*num_bytes=*/1, /*num_tokens=*/1));
  EXPECT_EQ(&queue.front(), first);
  EXPECT_EQ(first->size(), 7u);
}

}  // namespace
}  // namespace outrider
