// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_releases.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/nodes/node_group.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"

namespace outrider {
namespace {

const char kVerifiers[] = "verifier:7002";

// A node that hangs is told for ten seconds.
class SlowCache final : public CacheStub {
 public:
  explicit SlowCache(testing::EventLoop& loop) : loop_(loop) {}
  Task<void> Release(RequestHeader, Cancellation&) override {
    co_await loop_.Sleep(std::chrono::seconds(10));
  }

 private:
  testing::EventLoop& loop_;
};

class NodeReleasesTest : public ::testing::Test {
 protected:
  NodeReleasesTest() {
    group_.SetAddresses(kVerifiers, {"10.0.0.1:7002", "10.0.0.2:7002"});
    for (const VerifierNode* node : group_.TakeToAsk()) {
      group_.Learn(*node,
                   NodeDescription{.vocab_size = 10,
                                   .context_length = 10,
                                   .reply_formats = {ReplyFormat::kFull}});
    }
    AssessVerifiers(group_.knowledge(), /*terms=*/{}, tokenizer_hash_);
  }
  ~NodeReleasesTest() override {
    while (loop_.RunOne()) {
    }
  }
  Seat<VerifierNode> Sit() { return group_.Choose(SessionId::Random()).seat; }

  testing::EventLoop loop_;
  std::string tokenizer_hash_;
  NodeGroup<VerifierNode> group_{
      {kVerifiers},
      [this](const std::string& name, const std::string& address) {
        return std::unique_ptr<VerifierNode>(
            new VerifierNode{.link = {.name = name,
                                      .address = address,
                                      .is_connected = [] { return true; }},
                             .cache = std::make_unique<SlowCache>(loop_)});
      }};
  WaitingRoom room_{/*max_waiting=*/1};
  NodeReleases releases_{room_};
};

// It would be shunned for ten seconds after it is back.
TEST_F(NodeReleasesTest, SessionsThatHaveEndedAreNoLoadWhileTheirNodeIsTold) {
  std::array<Seat<VerifierNode>, 3> seats = {Sit(), Sit(), Sit()};
  VerifierNode* const node = seats[2].get();  // which has two of them
  for (Seat<VerifierNode>& seat : seats) {
    if (seat.get() == node) releases_.Release(std::move(seat), {});
  }
  EXPECT_EQ(Sit().get(), node);
}

TEST_F(NodeReleasesTest, ANodeThatHasLeftStaysWhileItIsTold) {
  Seat<VerifierNode> seat = Sit();
  const std::string address = seat->link.address;
  releases_.Release(std::move(seat), {});
  group_.SetAddresses(kVerifiers, {"10.0.0.3:7002"});
  group_.DropUnused();
  EXPECT_EQ(group_.knowledge().size(), 2u);
  while (loop_.RunOne()) {
  }
  group_.DropUnused();
  EXPECT_EQ(group_.knowledge().size(), 1u);
}

}  // namespace
}  // namespace outrider
