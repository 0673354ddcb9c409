// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CALL_QUEUE_H_
#define OUTRIDER_CORE_RPC_CALL_QUEUE_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/rpc/polling_turn.h"

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

// The completion queue of a process's calls, outgoing ones and those that its
// server gets, and the threads that handle what completes. One queue, as gRPC
// has one thread at a time wait for all connections of the process: what it
// finds for another queue costs a wake-up, and so do other threads on the same
// one. The callback API has threads of its own, hence nothing here uses it.
//
// A thread that polls asks for as long as `spin` whether something has come
// before it sleeps, as a core that halts meanwhile is slow to wake. That pays
// where it has a core of its own to burn, and costs where it does not; the log
// says so.
//
// Thread-safe; must outlive every call, and the server.
class CallQueue {
 public:
  using Spin = std::chrono::microseconds;
  // A pass of a large model; more would be burnt in vain.
  static constexpr Spin kLongestSpin{100'000};

  // All of them poll, as no handler takes long. With a spin one does, and
  // another stands by: each that spun would burn a core, and wait for the lock
  // under which gRPC looks at the connections.
  explicit CallQueue(int num_threads, Spin spin = Spin(0));
  // A thread that polls and one that stands by, as handlers may take long.
  struct WithStandby {
    Spin spin{0};
  };
  explicit CallQueue(WithStandby);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  grpc::CompletionQueue* queue() { return queue_.get(); }

  // A thread of a queue runs the work once what completed there has been
  // handled, so that what others wait for, such as the next call to a node, is
  // on its way first; any other thread runs it at once. Work runs in the order
  // in which it came, and what it needs has to live until then.
  static void Afterwards(std::function<void()> work);
  // Runs now what waits so on this thread, where nothing comes before it.
  static void RunWhatWaits();

  // RpcServer uses these: there is one for each queue.
  grpc::ServerCompletionQueue& server_queue() { return *queue_; }
  grpc::ServerBuilder& server_builder() { return builder_; }

 private:
  void Run();
  void StartTurns();
  static void Handle(Completion& completion, bool ok);
  // What completes next, and how. Null: the queue has ended.
  Completion* Next(bool& ok);
  void TakeTurns(bool is_my_turn);

  grpc::ServerBuilder builder_;  // it alone makes queues that servers can use
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_ =
      builder_.AddCompletionQueue();
  const Spin spin_;
  PollingTurn turn_;
  std::vector<std::jthread> threads_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CALL_QUEUE_H_
