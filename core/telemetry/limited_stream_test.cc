// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/limited_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace outrider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// They end no test, however busy the machine is.
constexpr ExchangeLimits kPatience = {.request = hours(1),
                                      .exchange = hours(1)};
constexpr milliseconds kShort(1);

class LimitedStreamTest : public ::testing::Test {
 protected:
  LimitedStreamTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
  }
  ~LimitedStreamTest() override {
    for (const int end : ends_) close(end);
  }
  void Say(const std::string& text) {
    const auto size = static_cast<ssize_t>(text.size());
    ASSERT_EQ(send(ends_[1], text.data(), text.size(), MSG_NOSIGNAL), size);
  }
  // Byte after byte, as the library reads lines.
  static std::string ReadAll(LimitedStream& stream, ssize_t& last) {
    std::string text;
    char byte = 0;
    while ((last = stream.read(&byte, 1)) == 1) text.push_back(byte);
    return text;
  }

  std::array<int, 2> ends_ = {};
};

TEST_F(LimitedStreamTest, ReadsWhatIsSentToItsEnd) {
  LimitedStream stream(ends_[0], kPatience);
  Say("GET /health");
  Say(" HTTP/1.1");
  shutdown(ends_[1], SHUT_WR);
  ssize_t last = -2;
  EXPECT_EQ(ReadAll(stream, last), "GET /health HTTP/1.1");
  EXPECT_EQ(last, 0);
}

TEST_F(LimitedStreamTest, ReadsNoRequestWithoutEnd) {
  LimitedStream stream(ends_[0], kPatience);
  Say(std::string(100 << 10, 'x'));
  ssize_t last = -2;
  EXPECT_EQ(ReadAll(stream, last).size(), 16u << 10);
  EXPECT_EQ(last, -1);
}

// The time counts from the stream's start, not from the read or the write that
// waits.
TEST_F(LimitedStreamTest, ReadsNothingThatComesAfterTheTimeOfARequest) {
  LimitedStream stream(ends_[0], {.request = kShort, .exchange = hours(1)});
  std::this_thread::sleep_for(kShort);
  Say("GET /health");
  ssize_t last = -2;
  EXPECT_EQ(ReadAll(stream, last), "");
  EXPECT_EQ(last, -1);
}

TEST_F(LimitedStreamTest, IsImpatientWithWhoSaysNothingWhileOthersWait) {
  LimitedStream alone(ends_[0],
                      {.request = kShort * 200, .hurried_request = kShort},
                      [] { return false; });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(alone.is_readable());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kShort * 199);
  LimitedStream hurried(ends_[0],
                        {.request = hours(1), .hurried_request = kShort},
                        [] { return true; });
  EXPECT_FALSE(hurried.is_readable());
  Say("GET /health");
  EXPECT_TRUE(hurried.is_readable());
}

TEST_F(LimitedStreamTest, WritesNothingAfterTheTimeOfAnExchange) {
  LimitedStream stream(ends_[0], {.request = hours(1), .exchange = kShort});
  std::this_thread::sleep_for(kShort);
  EXPECT_EQ(stream.write("y", 1), -1);
}

TEST_F(LimitedStreamTest, DoesNotWaitForWhoTakesNothingOfAReply) {
  LimitedStream stream(ends_[0], {.request = hours(1), .exchange = kShort});
  const std::string reply(4 << 20, 'y');  // more than the system keeps
  EXPECT_EQ(stream.write(reply.data(), reply.size()), -1);
}

TEST_F(LimitedStreamTest, WritesAllOfAReplyAsItIsTaken) {
  LimitedStream stream(ends_[0], kPatience);
  const std::string reply(4 << 20, 'y');  // more than the system keeps
  std::string taken;
  std::thread reader([&] {
    std::array<char, 1000> part;
    ssize_t count = 0;
    while ((count = recv(ends_[1], part.data(), part.size(), 0)) > 0) {
      taken.append(part.data(), static_cast<size_t>(count));
    }
  });
  EXPECT_EQ(stream.write(reply.data(), reply.size()),
            static_cast<ssize_t>(reply.size()));
  shutdown(ends_[0], SHUT_WR);
  reader.join();
  EXPECT_EQ(taken, reply);
}

}  // namespace
}  // namespace outrider
