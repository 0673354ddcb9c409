// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/open_streams.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(OpenStreamsTest, WithoutAnyNobodyWaits) {
  OpenStreams streams;
  { const OpenStreams::Place gone(streams); }
  const auto begin = OpenStreams::Clock::now();
  streams.AwaitNone(begin + minutes(1));
  EXPECT_LT(OpenStreams::Clock::now() - begin, minutes(1));
}

TEST(OpenStreamsTest, TheLastOfThemEndsTheWait) {
  OpenStreams streams;
  std::optional<OpenStreams::Place> first(streams);
  std::optional<OpenStreams::Place> last(streams);
  std::atomic<bool> is_last_gone = false;
  std::jthread leaves([&] {
    first.reset();
    std::this_thread::yield();
    is_last_gone = true;
    last.reset();
  });
  streams.AwaitNone(OpenStreams::Clock::now() + minutes(1));
  EXPECT_TRUE(is_last_gone);
}

TEST(OpenStreamsTest, OneThatStaysIsNotAwaitedBeyondTheEnd) {
  OpenStreams streams;
  const OpenStreams::Place stays(streams);
  const auto end = OpenStreams::Clock::now() + milliseconds(10);
  streams.AwaitNone(end);
  EXPECT_GE(OpenStreams::Clock::now(), end);
}

}  // namespace
}  // namespace outrider
