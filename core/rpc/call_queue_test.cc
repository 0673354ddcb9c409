// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/call_queue.h"

#include <grpcpp/alarm.h>

#include <chrono>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace outrider {
namespace {

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

TEST(CallQueueTest, WhatComesIsReadWhileAHandlerKeepsTheThreadThatPolls) {
  constexpr int kRounds = 3;
  std::deque<std::latch> next_has_come;
  std::vector<std::unique_ptr<Event>> events;
  std::latch is_done(2 * kRounds);
  CallQueue queue{CallQueue::WithStandby()};  // ends before what it tells
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

}  // namespace
}  // namespace outrider
