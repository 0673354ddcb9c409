// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verifier_streams.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/text_room.h"

namespace outrider::testing {

VerifierStreams::~VerifierStreams() {
  // Those that have not ended, as they should have, end now.
  num_steps_ = 0;
  cancellation_.Cancel();
  for (const auto& pool : pools_) pool->is_closed = true;
  while (loop_.RunOne()) {
  }
  streams_.clear();
}

void VerifierStreams::Start(size_t num_verifiers, size_t num_streams) {
  processes_.resize(num_verifiers);
  for (FakeProcess& process : processes_) process.poison = &poison_;
  for (int i = 0; i < num_coordinators_; ++i) {
    pools_.push_back(std::make_unique<FakePool>(loop_, processes_));
  }
  pool_ = pools_[0].get();
  for (size_t i = 0; i < num_streams; ++i) AddStream();
}

VerifierStreams::Stream& VerifierStreams::AddStream(
    std::optional<uint64_t> poison_from) {
  auto stream = std::make_unique<Stream>();
  stream->id = SessionId::FromBytes(
      absl::StrCat(1000 + streams_.size(), "abcdefghijkl"));
  if (poison_from.has_value()) poison_[stream->id] = *poison_from;
  // Their coordinators in turns.
  FakePool& pool = *pools_[streams_.size() % pools_.size()];
  auto choice = pool.ChooseVerifier(stream->id, {});
  stream->verifier = std::make_unique<SessionVerifier>(
      pool, stream->id, std::move(choice.seat), choice.description);
  stream->verifier->set_use(use_);
  streams_.push_back(std::move(stream));
  StartDetached(Run(*streams_.back()));
  return *streams_.back();
}

Task<void> VerifierStreams::Run(Stream& stream) {
  VerifyCall call = {.header = {.session = stream.id,
                                .step = 1,
                                .delta = {.append_tokens = prompt_}},
                     .sampling = sampling_,
                     .prompt_length = static_cast<int>(prompt_.size())};
  while (stream.num_steps < num_steps_) {
    stream.num_drafts =
        std::min(num_drafts_, stream.verifier->MostDrafts(TextLengthOf(call)));
    call.draft_tokens.assign(stream.num_drafts, 3);
    auto reply = co_await stream.verifier->Verify(call, cancellation_);
    if (!reply.ok()) {
      stream.end = reply.status();
      co_return;
    }
    stream.num_retries += reply->num_retries;
    ++call.header.step;
    if (const Miss* miss = std::get_if<Miss>(&reply->outcome)) {
      const bool is_kept = miss->reason == MissReason::kLength;
      if (!is_kept) call.header.incarnation = {};
      call.header.delta = {.append_tokens = prompt_};
      continue;
    }
    call.header.incarnation = reply->header.incarnation;
    call.header.delta = {.keep_length = static_cast<int>(prompt_.size()),
                         .append_tokens = {1, 2}};
    ++stream.num_steps;
    // A client that is nobody's first.
    co_await loop_.Sleep(std::chrono::milliseconds(1));
  }
  stream.end = absl::OkStatus();
}

void VerifierStreams::Restart(std::chrono::milliseconds after) {
  for (FakeProcess& process : processes_) {
    if (process.is_up || restarting_.contains(&process)) continue;
    restarting_.insert(&process);
    loop_.After(after, [this, &process] {
      restarting_.erase(&process);
      process.is_up = true;
    });
  }
  loop_.After(std::chrono::milliseconds(50), [this, after] {
    if (!pool_->is_closed) Restart(after);
  });
}

FakeProcess* VerifierStreams::InFlight() {
  const auto found = std::find_if(
      processes_.begin(), processes_.end(),
      [](const FakeProcess& process) { return process.num_in_flight > 0; });
  return found == processes_.end() ? nullptr : &*found;
}

FakeProcess& VerifierStreams::ProcessAt(const std::string& address) {
  const size_t begin = std::string("1.1.1.").size();
  return processes_.at(std::stoi(address.substr(begin)));
}

int64_t VerifierStreams::NumMoves(MoveReason reason) {
  int64_t sum = 0;
  for (const auto& pool : pools_) {
    sum += pool->moves().of_verifiers[static_cast<int>(reason)];
  }
  return sum;
}

}  // namespace outrider::testing
