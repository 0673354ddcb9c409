// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CALL_QUEUE_H_
#define OUTRIDER_CORE_RPC_CALL_QUEUE_H_

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace outrider {

// What waits in a CallQueue: told once, on one of its threads.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual void OnComplete(bool ok) = 0;
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
  // To be called before the operation starts whose Completion will be told:
  // what was written until then is visible to it.
  void Publish() { published_.fetch_add(1, std::memory_order_release); }

 private:
  void Run();

  grpc::CompletionQueue queue_;
  // gRPC's queue does order an operation's start before its completion, but in
  // code that the thread sanitizer cannot see.
  std::atomic<uint64_t> published_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CALL_QUEUE_H_
