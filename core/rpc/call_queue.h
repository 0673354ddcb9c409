// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CALL_QUEUE_H_
#define OUTRIDER_CORE_RPC_CALL_QUEUE_H_

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <thread>
#include <vector>

namespace outrider {

// What waits in a CallQueue: told once, on one of its threads.
class Completion {
 public:
  virtual ~Completion() = default;
  // Must precede the start of the operation. gRPC's queue orders what came
  // before with the completion, but the thread sanitizer cannot see into it:
  // this pair of atomic accesses it sees.
  void Arm() { armed_.store(true, std::memory_order_release); }
  void Complete(bool ok) {
    armed_.load(std::memory_order_acquire);
    OnComplete(ok);
  }

 private:
  virtual void OnComplete(bool ok) = 0;

  std::atomic<bool> armed_ = false;
};

// The completion queue of all outgoing calls, and the threads that resume the
// coroutines waiting for them. Asynchronous rather than callback client: the
// latter hops to one more thread, 20-50 us a call. Thread-safe; must outlive
// every call.
class CallQueue {
 public:
  explicit CallQueue(int num_threads);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  grpc::CompletionQueue* queue() { return &queue_; }

 private:
  void Run();

  grpc::CompletionQueue queue_;
  std::vector<std::jthread> threads_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CALL_QUEUE_H_
