// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/call_queue.h"

namespace outrider {

CallQueue::CallQueue(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

CallQueue::~CallQueue() {
  queue_.Shutdown();
  threads_.clear();  // joins: each returns when the queue is empty
}

void CallQueue::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) static_cast<Completion*>(tag)->Complete(ok);
}

}  // namespace outrider
