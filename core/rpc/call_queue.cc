// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/call_queue.h"

#include <grpc/support/time.h>

#include <utility>

#include "core/base/log.h"

namespace outrider {

namespace {

using WorkList = std::vector<std::function<void()>>;

// What waits for the completion that this thread handles, if it does.
thread_local WorkList* afterwards = nullptr;

CallQueue::Spin Told(CallQueue::Spin spin) {
  if (spin > CallQueue::Spin(0)) {
    OUTRIDER_LOG(kInfo) << "spins for up to " << spin.count()
                        << " us before it sleeps; this burns a core";
  }
  return spin;
}

}  // namespace

CallQueue::CallQueue(int num_threads, Spin spin) : spin_(Told(spin)) {
  if (spin_ > Spin(0)) {
    StartTurns();
    return;
  }
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

CallQueue::CallQueue(WithStandby with) : spin_(Told(with.spin)) {
  StartTurns();
}

CallQueue::~CallQueue() {
  queue_->Shutdown();
  threads_.clear();  // joins: each returns when the queue is empty
}

void CallQueue::StartTurns() {
  for (const bool polls_first : {true, false}) {
    threads_.emplace_back([this, polls_first] { TakeTurns(polls_first); });
  }
}

void CallQueue::Run() {
  bool ok = false;
  while (Completion* completion = Next(ok)) Handle(*completion, ok);
}

void CallQueue::Afterwards(std::function<void()> work) {
  if (afterwards == nullptr) {
    work();
  } else {
    afterwards->push_back(std::move(work));
  }
}

void CallQueue::RunWhatWaits() {
  while (afterwards != nullptr && !afterwards->empty()) {
    const WorkList waiting = std::exchange(*afterwards, {});
    for (const std::function<void()>& work : waiting) work();
  }
}

void CallQueue::Handle(Completion& completion, bool ok) {
  WorkList later;
  afterwards = &later;
  completion.Complete(ok);
  RunWhatWaits();
  afterwards = nullptr;
}

Completion* CallQueue::Next(bool& ok) {
  using Clock = std::chrono::steady_clock;
  void* tag = nullptr;
  auto status = grpc::CompletionQueue::TIMEOUT;
  if (spin_ > Spin(0)) {
    const Clock::time_point end = Clock::now() + spin_;
    do {
      status = queue_->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
    } while (status == grpc::CompletionQueue::TIMEOUT && Clock::now() < end);
  }
  if (status == grpc::CompletionQueue::TIMEOUT) {
    status = queue_->AsyncNext(&tag, &ok, gpr_inf_future(GPR_CLOCK_MONOTONIC));
  }
  if (status == grpc::CompletionQueue::SHUTDOWN) return nullptr;
  return static_cast<Completion*>(tag);
}

void CallQueue::TakeTurns(bool is_my_turn) {
  bool ok = false;
  while (is_my_turn || turn_.StandBy()) {
    Completion* const completion = Next(ok);
    if (completion == nullptr) {
      turn_.Close();
      return;
    }
    const uint64_t begun = turn_.Begin();
    Handle(*completion, ok);
    is_my_turn = turn_.End(begun);
  }
}

}  // namespace outrider
