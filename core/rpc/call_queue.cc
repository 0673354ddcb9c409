// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/call_queue.h"

namespace outrider {

CallQueue::CallQueue(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

CallQueue::CallQueue(WithStandby) {
  for (const bool polls_first : {true, false}) {
    threads_.emplace_back([this, polls_first] { TakeTurns(polls_first); });
  }
}

CallQueue::~CallQueue() {
  queue_->Shutdown();
  threads_.clear();  // joins: each returns when the queue is empty
}

void CallQueue::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Completion*>(tag)->Complete(ok);
}

void CallQueue::TakeTurns(bool is_my_turn) {
  void* tag = nullptr;
  bool ok = false;
  while (is_my_turn || turn_.StandBy()) {
    if (!queue_->Next(&tag, &ok)) {
      turn_.Close();
      return;
    }
    const uint64_t begun = turn_.Begin();
    static_cast<Completion*>(tag)->Complete(ok);
    is_my_turn = turn_.End(begun);
  }
}

}  // namespace outrider
