// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_calls.h"

#include <utility>

#include "core/rpc/deadline.h"

namespace outrider {
void ServerCalls::Add(RpcMethod method) {
  std::string path = method.path;
  methods_.emplace(std::move(path), std::move(method));
}

void ServerCalls::LimitReads(const RequestReads::Limits& limits,
                             const RequestReads::Limits& of_small) {
  reads_ = std::make_unique<Reads>(*this, limits);
  small_reads_ = std::make_unique<Reads>(*this, of_small);
}

void ServerCalls::AwaitEnd() {
  MutexLock lock(mu_);
  is_ending_ = true;
  if (limits_reads()) {
    reads_->CancelAlarm();
    small_reads_->CancelAlarm();
  }
  while (num_calls_ > 0) changed_.Wait(mu_);
}

const RpcMethod* ServerCalls::Find(absl::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
}

void ServerCalls::EnterReads(const RpcMethod& method,
                             RequestReads::Reader& reader) {
  Reads& reads = ReadsOf(method);
  if (!reads.requests().Enter(reader)) return;
  MutexLock lock(mu_);
  if (is_ending_) return;
  ++num_calls_;
  reads.SetAlarm();
}

bool ServerCalls::LeaveReads(const RpcMethod& method,
                             RequestReads::Reader& reader) {
  return ReadsOf(method).requests().Leave(reader);
}

void ServerCalls::Reads::SetAlarm() {
  Arm();
  alarm_.Set(calls_.queue_.queue(), DeadlineAfter(RequestReads::kTick), this);
}

void ServerCalls::Reads::OnComplete(bool /*ok*/) {
  ServerCalls& calls = calls_;
  const bool goes_on = requests_.Tick();
  MutexLock lock(calls.mu_);
  if (goes_on && !calls.is_ending_) return SetAlarm();
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
