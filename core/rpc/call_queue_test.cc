// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/call_queue.h"

#include <grpcpp/alarm.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

constexpr CallQueue::Spin kSpin = std::chrono::milliseconds(1);

// Runs once on a thread of the queue.
class Event final : public Completion {
 public:
  Event(CallQueue& queue, std::function<void()> event)
      : event_(std::move(event)) {
    Arm();
    alarm_.Set(queue.queue(), std::chrono::system_clock::now(), this);
  }

 private:
  void OnComplete(bool /*ok*/) override { event_(); }

  const std::function<void()> event_;
  grpc::Alarm alarm_;
};

template <typename... Arguments>
void ExpectThatAnotherPollsMeanwhile(Arguments... arguments) {
  constexpr int kRounds = 3;
  std::deque<std::latch> next_has_come;
  std::vector<std::unique_ptr<Event>> events;
  std::latch is_done(2 * kRounds);
  CallQueue queue(arguments...);  // ends before what it tells
  for (int i = 0; i < kRounds; ++i) {
    std::latch& has_come = next_has_come.emplace_back(1);
    events.push_back(std::make_unique<Event>(queue, [&] {
      has_come.wait();
      is_done.count_down();
    }));
    events.push_back(std::make_unique<Event>(queue, [&] {
      has_come.count_down();
      is_done.count_down();
    }));
    has_come.wait();
  }
  is_done.wait();
}

TEST(CallQueueTest, WhatComesIsReadWhileAHandlerKeepsTheThreadThatPolls) {
  ExpectThatAnotherPollsMeanwhile(CallQueue::WithStandby());
  ExpectThatAnotherPollsMeanwhile(/*num_threads=*/1, kSpin);
  ExpectThatAnotherPollsMeanwhile(/*num_threads=*/4, kSpin);
}

TEST(CallQueueTest, WhatCanWaitComesOnceAHandlerIsThrough) {
  std::vector<std::string> order;
  std::latch is_done(1);
  std::vector<std::unique_ptr<Event>> events;
  CallQueue queue(/*num_threads=*/1);
  events.push_back(std::make_unique<Event>(queue, [&] {
    CallQueue::Afterwards([&] { order.push_back("a write"); });
    CallQueue::Afterwards([&] {
      order.push_back("another");
      is_done.count_down();
    });
    order.push_back("the next call");
  }));
  is_done.wait();
  CallQueue::Afterwards([&] { order.push_back("no queue's thread"); });
  const std::vector<std::string> expected = {"the next call", "a write",
                                             "another", "no queue's thread"};
  EXPECT_EQ(order, expected);
}

// What the process's threads have run for.
std::chrono::nanoseconds CpuTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

TEST(CallQueueTest, ThreadsThatSpinAreToldAndSleepAfterwards) {
  std::latch is_done(6);
  std::vector<std::unique_ptr<Event>> events;
  CallQueue queue(/*num_threads=*/2, kSpin);
  CallQueue with_standby{CallQueue::WithStandby{kSpin}};
  for (int i = 0; i < 3; ++i) {
    for (CallQueue* each : {&queue, &with_standby}) {
      events.push_back(
          std::make_unique<Event>(*each, [&] { is_done.count_down(); }));
      // Some come while a thread spins, others while it sleeps.
      std::this_thread::sleep_for(kSpin * i * 2);
    }
  }
  is_done.wait();
  const auto before = CpuTime();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(CpuTime() - before, std::chrono::milliseconds(150));
}

TEST(CallQueueTest, SpinningBurnsOneCoreWhateverTheThreads) {
  const CallQueue queue(/*num_threads=*/4, CallQueue::kLongestSpin);
  const auto before = CpuTime();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(CallQueue::kLongestSpin);
  const auto wall = std::chrono::steady_clock::now() - start;
  EXPECT_LT(CpuTime() - before, wall * 1.3);
}

}  // namespace
}  // namespace outrider
