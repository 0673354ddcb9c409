// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_verifier.h"

#include <algorithm>

#include "absl/status/status.h"
#include "coordinator/nodes/text_room.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "tests/support/loop_timer.h"

namespace outrider::testing {

Task<absl::StatusOr<VerifyReply>> FakeStub::Verify(
    const VerifyCall& call, std::chrono::milliseconds timeout,
    Cancellation& cancellation) {
  if (process_.is_silent) {
    co_await LoopTimer(loop_).Sleep(timeout, cancellation);
    co_return absl::DeadlineExceededError("is silent");
  }
  if (!process_.is_up) co_return absl::UnavailableError("refused");
  if (!process_.refusal.ok()) {
    ++process_.num_refused;
    co_return process_.refusal;
  }
  if (LengthOf(call) > RoomOf(process_.description)) {
    co_return absl::ResourceExhaustedError("more than there is");
  }
  if (static_cast<int>(call.draft_tokens.size()) >
      process_.description.max_draft_tokens) {
    co_return absl::InvalidArgumentError("more drafts than it takes");
  }
  const absl::Status taken_in = co_await TakeIn(
      call.header.delta.append_tokens.size(), timeout, cancellation);
  if (!taken_in.ok()) co_return taken_in;
  const bool is_too_long =
      call.header.delta.append_tokens.size() > process_.longest_text;
  if ((process_.is_full || is_too_long) && call.header.delta.keep_length == 0) {
    ++process_.num_refused;
    co_return WithRetryDelay(absl::ResourceExhaustedError("full"),
                             std::chrono::seconds(1));
  }
  const int num_breaks = process_.num_breaks;
  const RequestHeader& header = call.header;
  const bool is_suspect = process_.suspects->Began(header.session);
  ++process_.num_in_flight;
  co_await loop_.Sleep(process_.is_hung ? timeout : process_.step);
  --process_.num_in_flight;
  if (process_.is_hung) co_return absl::DeadlineExceededError("hangs");
  const auto poison = process_.poison->find(header.session);
  if (process_.is_up && poison != process_.poison->end() &&
      header.step >= poison->second) {
    process_.Die();
  }
  if (process_.num_breaks != num_breaks) {
    co_return absl::UnavailableError("the connection broke");
  }
  if (is_suspect) process_.suspects->Ended();
  if (process_.num_failing > 0) {
    --process_.num_failing;
    process_.sessions.erase(header.session);
    co_return absl::InternalError("a pass failed");
  }
  co_return Answer(header);
}

Task<absl::Status> FakeStub::TakeIn(size_t num_tokens,
                                    std::chrono::milliseconds timeout,
                                    Cancellation& cancellation) {
  if (num_tokens <= 2) co_return absl::OkStatus();
  ++process_.num_texts;
  const EventLoop::Clock::time_point deadline = loop_.now() + timeout;
  process_.texts_end = std::max(process_.texts_end, loop_.now()) +
                       num_tokens * process_.per_token;
  while (loop_.now() < process_.texts_end) {
    const auto until = std::min(process_.texts_end, deadline);
    co_await LoopTimer(loop_).Sleep(
        std::chrono::ceil<std::chrono::milliseconds>(until - loop_.now()),
        cancellation);
    if (cancellation.cancelled()) co_return absl::CancelledError();
    if (loop_.now() >= deadline) co_return absl::DeadlineExceededError("texts");
  }
  co_return absl::OkStatus();
}

absl::StatusOr<VerifyReply> FakeStub::Answer(const RequestHeader& header) {
  VerifyReply reply = {.outcome = Verdict{}};
  reply.header.session = header.session;
  reply.header.step = header.step;
  reply.header.is_draining = process_.is_draining;
  const std::chrono::duration<double> text =
      header.delta.append_tokens.size() * process_.per_token;
  reply.header.compute_seconds = 0.01 + text.count();
  reply.header.own_seconds = process_.own_share * reply.header.compute_seconds;
  if (header.is_moved) {
    ++process_.num_moved;
    reply.header.next_reprefill_in = process_.next_reprefill_in;
  }
  Incarnation& life = process_.sessions[header.session];
  const auto released = process_.released.find(header.session);
  if (header.incarnation.is_none() && released != process_.released.end() &&
      header.step <= released->second) {
    ++process_.num_stale;
    reply.outcome = Miss{MissReason::kStale, 0};
    return reply;
  }
  if (header.incarnation.is_none()) {
    life = Incarnation::Random();
    reply.model = process_.description.identity();
    reply.model->weights_hash = process_.weights_hash;
  } else if (life != header.incarnation) {
    reply.outcome = Miss{MissReason::kUnknownIncarnation, 0};
    return reply;
  }
  reply.header.incarnation = life;
  if (process_.preempts && header.delta.keep_length > 0) {
    reply.outcome = Miss{MissReason::kLength, 0};
  }
  return reply;
}

Task<absl::StatusOr<bool>> FakeStub::Isolate(const SessionId& session,
                                             std::chrono::milliseconds timeout,
                                             Cancellation& cancellation) {
  if (process_.is_old) co_return absl::UnimplementedError("what?");
  const EventLoop::Clock::time_point deadline = loop_.now() + timeout;
  bool is_answered = false;
  while (!is_answered && loop_.now() < deadline && !cancellation.cancelled()) {
    co_await LoopTimer(loop_).Sleep(std::chrono::milliseconds(1), cancellation);
    is_answered = !process_.is_silent && !process_.is_starved;
  }
  if (!process_.is_up) co_return absl::UnavailableError("refused");
  if (!is_answered) co_return absl::DeadlineExceededError("asked in vain");
  co_return process_.suspects->Enter(session, loop_.now());
}

Task<absl::StatusOr<NodeDescription>> FakeStub::Describe(
    std::chrono::milliseconds timeout, Cancellation& cancellation) {
  if (process_.is_silent) {
    co_await LoopTimer(loop_).Sleep(timeout, cancellation);
    co_return absl::DeadlineExceededError("is silent");
  }
  if (!process_.is_up) co_return absl::UnavailableError("refused");
  if (process_.is_draining) co_return NodeDrainsError();
  if (!process_.unsaid.ok()) co_return process_.unsaid;
  ++process_.num_described;
  NodeDescription description = process_.description;
  description.weights_hash = process_.weights_hash;
  co_return description;
}

}  // namespace outrider::testing
