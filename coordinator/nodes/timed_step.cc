// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/timed_step.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "core/base/child_cancellation.h"
#include "core/base/monotonic_clock.h"
#include "core/base/side_task.h"

namespace outrider {
namespace {

using Clock = MonotonicClock;
using Reply = absl::StatusOr<VerifyReply>;
using std::chrono::milliseconds;

struct Sent {
  Reply reply;
  bool is_silent = false;  // it was given up, as the node is
  bool is_late = false;    // it was given up, as its text is
};

bool IsLate(const Sent& sent) {
  return absl::IsDeadlineExceeded(sent.reply.status()) && !sent.is_silent;
}

milliseconds Since(Clock::time_point begin) {
  return std::chrono::ceil<milliseconds>(Clock::now() - begin);
}

// What the verifier took for the tokens that it went on with.
milliseconds InFurtherPasses(const VerifyReply& reply) {
  const auto num_more = static_cast<double>(reply.more_tokens.size());
  return std::chrono::floor<milliseconds>(std::chrono::duration<double>(
      std::max(0.0, reply.header.compute_seconds) * num_more / (num_more + 1)));
}

// Where it `listens`, it does not wait for a node that answers nothing at all.
Task<Sent> Send(VerifierNode& node, const VerifyCall& call,
                milliseconds timeout, bool listens,
                Cancellation& cancellation) {
  if (!listens) {
    Reply reply = co_await node.stub->Verify(call, timeout, cancellation);
    co_return Sent{.reply = std::move(reply)};
  }
  Pulse::Call waiting(node.link.pulse, cancellation);
  Reply reply =
      co_await node.stub->Verify(call, timeout, waiting.cancellation());
  Sent sent = {.reply = std::move(reply)};
  sent.is_silent = !sent.reply.ok() && waiting.is_given_up();
  if (sent.is_silent) {
    sent.reply =
        absl::DeadlineExceededError("the node does not answer anything");
  }
  co_return sent;
}

// Runs beside a call that has a text taken in, until that was answered. True:
// it was late, and is cancelled.
struct LateText {
  const StepPace& pace;
  const StepPace::Step& step;
  const int times;
  const Clock::time_point begin;

  Task<bool> Watch(Timer& timer, Cancellation& answered,
                   Cancellation& call) const {
    while (!answered.cancelled()) {
      const milliseconds left = *pace.Limit(step) * times - Since(begin);
      if (left <= milliseconds(0)) {
        call.Cancel();
        co_return true;
      }
      co_await timer.Sleep(left, answered);
    }
    co_return false;
  }
};

// Other texts that come in the meantime give it more time.
Task<Sent> SendText(VerifierNode& node, const VerifyCall& call,
                    milliseconds longest, const LateText& late, Timer& timer,
                    Cancellation& cancellation) {
  ChildCancellation child(cancellation);
  Cancellation answered;
  SideTask<bool> watch(late.Watch(timer, answered, child.get()));
  Sent sent = co_await Send(node, call, longest, /*listens=*/late.times == 1,
                            child.get());
  answered.Cancel();
  co_await watch.Join();
  sent.is_late = watch.Take() && !sent.reply.ok() && !cancellation.cancelled();
  if (sent.is_late) {
    sent.reply = absl::DeadlineExceededError("takes too long over a text");
  }
  co_return sent;
}

}  // namespace

Task<TimedReply> SendStep(VerifierNode& node, const VerifyCall& call,
                          StepPatience patience, Timer& timer,
                          Cancellation& cancellation) {
  const auto num_appended =
      static_cast<int>(call.header.delta.append_tokens.size());
  const StepPace::Step step =
      node.pace.Begin(num_appended, /*may_go_on=*/call.max_more_tokens > 0);
  const Clock::time_point begin = Clock::now();
  const milliseconds longest = node.stub->TimeoutOf(call);
  const bool is_limited =
      patience.may_go_elsewhere && node.pace.Limit(step).has_value();
  const auto timeout_by_now = [&] {
    const auto limit = is_limited ? node.pace.Limit(step) : std::nullopt;
    return std::min(longest, limit.value_or(longest) * patience.times);
  };
  milliseconds timeout = longest;
  Sent sent;
  if (is_limited && step.is_text()) {
    const LateText late = {node.pace, step, patience.times, begin};
    sent = co_await SendText(node, call, timeout, late, timer, cancellation);
  } else {
    const bool listens = (is_limited || !patience.may_go_elsewhere) &&
                         patience.may_move && patience.times == 1;
    do {
      timeout = timeout_by_now();
      sent = co_await Send(node, call, timeout - Since(begin), listens,
                           cancellation);
      // Texts have come that it waits for: it is sent again, which costs less
      // than to watch every step.
    } while (IsLate(sent) &&
             timeout_by_now() > std::max(timeout, Since(begin)));
  }
  const Reply& reply = sent.reply;
  const milliseconds took = Since(begin);
  if (reply.ok()) node.link.pulse.Heard(Clock::now());
  if (reply.ok() && !std::holds_alternative<Miss>(reply->outcome)) {
    // What came after a text says nothing of how long texts take.
    const bool has_more = step.is_text() && !reply->more_tokens.empty();
    const int num_computed =
        has_more ? 0 : num_appended - reply->header.reused_length;
    node.pace.Answered(step, num_computed, reply->header.compute_seconds,
                       took - InFurtherPasses(*reply));
  } else if (IsLate(sent)) {
    node.pace.Late(step, took);
  } else {
    node.pace.Failed(step);
  }
  const bool had_all_time =
      timeout == longest && !sent.is_silent && !sent.is_late;
  co_return TimedReply{std::move(sent.reply), had_all_time, sent.is_silent};
}

}  // namespace outrider
