// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_calls.h"

#include <chrono>
#include <utility>

#include "core/rpc/deadline.h"

namespace outrider {
namespace {

// Who waits for a place is to have it soon after another's patience is over.
constexpr std::chrono::milliseconds kTick(250);

}  // namespace

void ServerCalls::Add(RpcMethod method) {
  std::string path = method.path;
  methods_.emplace(std::move(path), std::move(method));
}

void ServerCalls::LimitReads(const RequestReads::Limits& limits) {
  reads_ = std::make_unique<RequestReads>(limits);
}

void ServerCalls::AwaitEnd() {
  MutexLock lock(mu_);
  is_ending_ = true;
  ticks_.Cancel();
  while (num_calls_ > 0) changed_.Wait(mu_);
}

const RpcMethod* ServerCalls::Find(absl::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
}

void ServerCalls::EnterReads(RequestReads::Reader& reader) {
  if (!reads_->Enter(reader)) return;
  MutexLock lock(mu_);
  if (is_ending_) return;
  ++num_calls_;
  ticks_.Set();
}

bool ServerCalls::LeaveReads(RequestReads::Reader& reader) {
  return reads_->Leave(reader);
}

void ServerCalls::Ticks::Set() {
  Arm();
  alarm_.Set(calls_.queue_.queue(), DeadlineAfter(kTick), this);
}

void ServerCalls::Ticks::OnComplete(bool /*ok*/) {
  ServerCalls& calls = calls_;
  const bool goes_on = calls.reads_->Tick();
  MutexLock lock(calls.mu_);
  if (goes_on && !calls.is_ending_) return Set();
  --calls.num_calls_;
  if (calls.num_calls_ == 0) calls.changed_.NotifyAll();
}

grpc::ServerCompletionQueue& ServerCalls::Entered() {
  MutexLock lock(mu_);
  ++num_calls_;
  return queue_.server_queue();
}

void ServerCalls::Left() {
  MutexLock lock(mu_);
  --num_calls_;
  if (num_calls_ == 0) changed_.NotifyAll();
}

}  // namespace outrider
