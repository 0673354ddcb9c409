// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_verifier.h"

#include "absl/status/status.h"
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
  co_return Answer(header);
}

absl::StatusOr<VerifyReply> FakeStub::Answer(const RequestHeader& header) {
  VerifyReply reply = {.outcome = Verdict{}};
  reply.header.session = header.session;
  reply.header.step = header.step;
  reply.header.is_draining = process_.is_draining;
  reply.header.compute_seconds = 0.01;
  Incarnation& life = process_.sessions[header.session];
  if (header.incarnation.is_none()) {
    life = Incarnation::Random();
    reply.model = {.weights_hash = process_.weights_hash};
  } else if (life != header.incarnation) {
    reply.outcome = Miss{MissReason::kUnknownIncarnation, 0};
    return reply;
  }
  reply.header.incarnation = life;
  return reply;
}

Task<absl::StatusOr<bool>> FakeStub::Isolate(const SessionId& session,
                                             std::chrono::milliseconds timeout,
                                             Cancellation& cancellation) {
  if (process_.is_old) co_return absl::UnimplementedError("what?");
  co_await LoopTimer(loop_).Sleep(
      process_.is_silent ? timeout : std::chrono::milliseconds(1),
      cancellation);
  if (!process_.is_up) co_return absl::UnavailableError("refused");
  co_return process_.suspects->Enter(session, loop_.now());
}

Task<absl::StatusOr<NodeDescription>> FakeStub::Describe(
    std::chrono::milliseconds timeout, Cancellation& cancellation) {
  if (process_.is_silent) {
    co_await LoopTimer(loop_).Sleep(timeout, cancellation);
    co_return absl::DeadlineExceededError("is silent");
  }
  if (!process_.is_up) co_return absl::UnavailableError("refused");
  if (process_.is_draining) co_return absl::UnavailableError("draining");
  co_return NodeDescription{.weights_hash = process_.weights_hash,
                            .vocab_size = 10,
                            .context_length = 1000,
                            .reply_formats = {ReplyFormat::kFull}};
}

}  // namespace outrider::testing
