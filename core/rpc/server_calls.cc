// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_calls.h"

#include <utility>

namespace outrider {

void ServerCalls::Add(RpcMethod method) {
  std::string path = method.path;
  methods_.emplace(std::move(path), std::move(method));
}

void ServerCalls::AwaitEnd() {
  MutexLock lock(mu_);
  while (num_calls_ > 0) changed_.Wait(mu_);
}

const RpcMethod* ServerCalls::Find(absl::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
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
