// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/grpc_response_writer.h"

#include <utility>

namespace outrider {

Task<bool> ResponseWriter::Write(v1::GenerateResponse response) {
  bool too_many = false;
  bool start = false;
  const v1::GenerateResponse* front = nullptr;
  {
    MutexLock lock(mu_);
    if (broken_) co_return false;
    queue_.push_back(std::move(response));
    start = queue_.size() == 1;
    front = &queue_.front();
    too_many = queue_.size() >= kMaxQueued;
  }
  if (start) StartWrite(front);
  if (too_many) co_await Drained{*this};
  MutexLock lock(mu_);
  co_return !broken_;
}

bool ResponseWriter::Drained::await_suspend(std::coroutine_handle<> waiting) {
  MutexLock lock(writer.mu_);
  if (writer.broken_ || writer.queue_.size() < kMaxQueued) return false;
  writer.waiting_ = waiting;
  return true;
}

void ResponseWriter::FinishAfterWrites(grpc::Status status) {
  {
    MutexLock lock(mu_);
    if (!queue_.empty() && !broken_) {
      finish_ = std::move(status);
      return;
    }
  }
  Finish(std::move(status));
}

void ResponseWriter::OnWriteDone(bool ok) {
  const v1::GenerateResponse* next = nullptr;
  std::coroutine_handle<> resume;
  std::optional<grpc::Status> finish;
  {
    MutexLock lock(mu_);
    queue_.pop_front();
    if (!ok) {
      broken_ = true;
      queue_.clear();
    }
    if (!queue_.empty()) next = &queue_.front();
    if (queue_.size() < kMaxQueued / 2) resume = std::exchange(waiting_, {});
    if (queue_.empty()) finish = std::exchange(finish_, std::nullopt);
  }
  if (!ok) cancellation_->Cancel();
  if (next != nullptr) StartWrite(next);
  if (finish.has_value()) {
    Finish(*std::move(finish));
  } else if (resume) {
    resume.resume();
  }
}

}  // namespace outrider
