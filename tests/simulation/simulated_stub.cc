// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulated_stub.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"

namespace outrider::testing {

template <typename Node>
Task<absl::StatusOr<typename Node::Reply>> SimulatedStub<Node>::Ask(
    const Call& call, std::chrono::milliseconds timeout,
    Cancellation& cancellation) {
  const auto asked = std::make_shared<Asked>();
  asked->header = call.header;
  *current_ = asked;
  if (way_.protocol.truncates_apart) SendTruncate(call.header);
  Send(call, asked);
  way_.loop.After(timeout, [asked] {
    End<Reply>(*asked, absl::DeadlineExceededError("no answer in time"));
  });
  EventLoop& loop = way_.loop;
  const uint64_t registration = cancellation.OnCancel([&loop, asked] {
    loop.After({}, [asked] { End<Reply>(*asked, absl::CancelledError()); });
  });
  co_await Answered<Reply>{*asked};
  cancellation.Forget(registration);
  absl::StatusOr<Reply> reply = *std::move(asked->reply);
  if (reply.ok()) cached_length_ = reply->header.cached_length;
  co_return reply;
}

template <typename Node>
Task<absl::StatusOr<NodeDescription>> SimulatedStub<Node>::Describe(
    Way way, std::chrono::milliseconds timeout) {
  const auto asked = std::make_shared<Waited<NodeDescription>>();
  const auto end = [asked](absl::StatusOr<NodeDescription> answer) {
    End<NodeDescription>(*asked, std::move(answer));
  };
  way.network.ToNode(way.index, [way, end](Network::Arrival) {
    way.node.Describe([way, end](absl::StatusOr<NodeDescription> answer) {
      way.network.FromNode(way.index,
                           [end, answer](Network::Arrival) { end(answer); });
    });
  });
  way.loop.After(timeout, [end] {
    end(absl::DeadlineExceededError("no answer in time"));
  });
  co_await Answered<NodeDescription>{*asked};
  co_return *std::move(asked->reply);
}

template <typename Node>
Task<absl::StatusOr<bool>> SimulatedStub<Node>::Isolate(
    Way way, SessionId session, std::chrono::milliseconds timeout) {
  const auto asked = std::make_shared<Waited<bool>>();
  const auto end = [asked](absl::StatusOr<bool> answer) {
    End<bool>(*asked, std::move(answer));
  };
  way.network.ToNode(way.index, [way, session, end](Network::Arrival) {
    way.node.Isolate(session, [way, end](absl::StatusOr<bool> answer) {
      way.network.FromNode(way.index,
                           [end, answer](Network::Arrival) { end(answer); });
    });
  });
  way.loop.After(timeout, [end] {
    end(absl::DeadlineExceededError("no answer in time"));
  });
  co_await Answered<bool>{*asked};
  co_return *std::move(asked->reply);
}

template <typename Node>
void SimulatedStub<Node>::Release(const RequestHeader& header) {
  way_.network.ToNode(way_.index, [way = way_, header](Network::Arrival) {
    way.node.Release(header);
  });
}

template <typename Node>
void SimulatedStub<Node>::Send(const Call& call,
                               const std::shared_ptr<Asked>& asked) {
  const auto answer = [way = way_, current = current_,
                       asked](absl::StatusOr<Reply> reply) {
    way.network.FromNode(
        way.index, [way, current, asked, reply](Network::Arrival arrival) {
          // A status says of no session or step: nobody could tell whose it
          // is, and gRPC gives it to nobody else.
          const bool is_crossed =
              arrival == Network::Arrival::kCrossed && reply.ok();
          const bool is_loose = !way.protocol.replies_match_step || is_crossed;
          Arrived(way, is_loose ? *current : asked, reply);
        });
  };
  way_.network.ToNode(way_.index, [way = way_, call, answer](Network::Arrival) {
    way.node.Deliver(call, answer);
  });
}

template <typename Node>
void SimulatedStub<Node>::SendTruncate(const RequestHeader& header) {
  if (header.incarnation.is_none()) return;
  const int length = header.delta.keep_length;
  const int number = cached_length_ - length;
  way_.network.ToNode(way_.index,
                      [way = way_, header, length, number](Network::Arrival) {
                        way.node.Truncate(header, length, number);
                      });
}

template <typename Node>
void SimulatedStub<Node>::Arrived(const Way& way, std::shared_ptr<Asked> asked,
                                  absl::StatusOr<Reply> reply) {
  if (asked == nullptr) return;
  if (reply.ok() && !way.protocol.replies_match_step) {
    reply->header.step = asked->header.step;
    if (!asked->header.incarnation.is_none()) {
      reply->header.incarnation = asked->header.incarnation;
    }
  }
  End<Reply>(*asked, std::move(reply));
}

template class SimulatedStub<SimulatedNode<VerifyNode>>;
template class SimulatedStub<SimulatedNode<DraftNode>>;

}  // namespace outrider::testing
