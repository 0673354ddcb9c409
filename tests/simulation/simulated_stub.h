// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SIMULATED_STUB_H_
#define OUTRIDER_TESTS_SIMULATION_SIMULATED_STUB_H_

#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_description.h"
#include "tests/simulation/network.h"
#include "tests/simulation/simulated_node.h"

namespace outrider::testing {

// One session's way to one node over the network: a call at a time, each with
// a deadline of its own. What arrives for a call that has ended is dropped, as
// by gRPC.
template <typename Node>
class SimulatedStub {
 public:
  using Call = typename Node::Call;
  using Reply = typename Node::Reply;

  struct Way {
    EventLoop& loop;
    Network& network;
    Node& node;
    int index = 0;  // the network's number for it
    WeakProtocol protocol = {};
  };

  explicit SimulatedStub(const Way& way) : way_(way) {}

  Task<absl::StatusOr<Reply>> Ask(const Call& call,
                                  std::chrono::milliseconds timeout,
                                  Cancellation& cancellation);
  static Task<absl::StatusOr<NodeDescription>> Describe(
      Way way, std::chrono::milliseconds timeout);
  static Task<absl::StatusOr<bool>> Isolate(Way way, SessionId session,
                                            std::chrono::milliseconds timeout);
  // Advisory: nobody waits for it.
  void Release(const RequestHeader& header);

 private:
  template <typename T>
  struct Waited {
    std::optional<absl::StatusOr<T>> reply = {};
    std::coroutine_handle<> waiter = {};
  };
  struct Asked : Waited<Reply> {
    RequestHeader header = {};
  };
  template <typename T>
  struct Answered {
    Waited<T>& asked;
    bool await_ready() const noexcept { return asked.reply.has_value(); }
    void await_suspend(std::coroutine_handle<> waiter) const {
      asked.waiter = waiter;
    }
    void await_resume() const noexcept {}
  };

  // These outlive the stub in messages under way.
  static void Arrived(const Way& way, std::shared_ptr<Asked> asked,
                      absl::StatusOr<Reply> reply);
  template <typename T>
  static void End(Waited<T>& asked, absl::StatusOr<T> reply) {
    if (asked.reply.has_value()) return;
    asked.reply = std::move(reply);
    if (asked.waiter) asked.waiter.resume();
  }
  void Send(const Call& call, const std::shared_ptr<Asked>& asked);
  void SendTruncate(const RequestHeader& header);

  const Way way_;
  // What is waited for now: what arrives knows it by this.
  const std::shared_ptr<std::shared_ptr<Asked>> current_ =
      std::make_shared<std::shared_ptr<Asked>>();
  int cached_length_ = 0;  // by the last reply
};

extern template class SimulatedStub<SimulatedNode<VerifyNode>>;
extern template class SimulatedStub<SimulatedNode<DraftNode>>;

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATED_STUB_H_
