// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_call.h"

#include <grpcpp/support/slice.h>

#include <limits>
#include <utility>

#include "core/base/log.h"
#include "core/base/thrown_status.h"
#include "core/rpc/metadata_limits.h"
#include "core/rpc/server_calls.h"
#include "core/rpc/status_convert.h"

namespace outrider {
namespace {

// The channel inside this process alone has no address. What the process asks
// of itself must not wait behind what others send.
bool IsFromInside(const grpc::ServerContext& context) {
  return context.peer() == "unknown";
}

}  // namespace

ServerCall::ServerCall(ServerCalls& calls) : calls_(calls) {
  grpc::ServerCompletionQueue& queue = calls_.Entered();
  done_.Arm();
  context_.AsyncNotifyWhenDone(&done_);
  arrived_.Arm();
  calls_.generic_service().RequestCall(&context_, &stream_, &queue, &queue,
                                       &arrived_);
}

ServerCall::~ServerCall() = default;

// What ends the call may be told on another thread meanwhile.
void ServerCall::Operation::OnComplete(bool ok) {
  ServerCall& call = call_;
  ++call.num_to_come_;
  (call.*then_)(ok);
  call.Leave();
}

const std::string& ServerCall::method() const { return method_->path; }

bool ServerCall::is_cancelled() const {
  MutexLock lock(mu_);
  return is_cancelled_;
}

CallQueue& ServerCall::queue() const { return calls_.queue(); }

void ServerCall::Accompany(std::unique_ptr<Companion> companion) {
  Companion* const present = companion.get();
  bool is_cancelled = false;
  {
    MutexLock lock(mu_);
    companion_ = std::move(companion);
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) present->OnCancelled();
}

size_t ServerCall::MostBytes() const {
  return method_->is_small ? kMostSmallBytes
                           : std::numeric_limits<size_t>::max();
}

void ServerCall::BeginRead() {
  ++num_to_come_;
  was_read_.Arm();
  stream_.Read(&read_, &was_read_);
}

// Under the lock of all reads, which do not wait for the log.
void ServerCall::Refuse(const absl::Status& status) {
  calls_.unread().Count(UnreadReason::kTurn);
  refusal_ = status;
  Finish(ToGrpcStatus(status));
}

absl::Status ServerCall::Counted(UnreadReason reason, absl::Status status) {
  if (!status.ok()) {
    calls_.unread().Count(reason);
    calls_.unread().Log(reason, context_.method(), status);
  }
  return status;
}

void ServerCall::WriteBytes(absl::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  written_.Arm();
  stream_.Write(grpc::ByteBuffer(&slice, 1), &written_);
}

void ServerCall::ReplyBuffer(const grpc::ByteBuffer& bytes) {
  finished_.Arm();
  stream_.WriteAndFinish(bytes, {}, grpc::Status::OK, &finished_);
}

void ServerCall::Finish(const grpc::Status& status) {
  finished_.Arm();
  stream_.Finish(status, &finished_);
}

void ServerCall::OnArrived(bool ok) {
  if (!ok) {  // the server shuts down, and neither of the two will come
    Leave();
    Leave();
    return;
  }
  arrived_at_ = std::chrono::steady_clock::now();
  calls_.AwaitNext();
  method_ = calls_.Find(context_.method());
  const absl::Status limits = CheckMetadata(context_);
  if (method_ == nullptr) {
    Finish(ToGrpcStatus(
        Counted(UnreadReason::kMethod, absl::UnimplementedError(""))));
  } else if (!limits.ok()) {
    Finish(ToGrpcStatus(Counted(UnreadReason::kMetadata, limits)));
  } else {
    has_place_ = calls_.limits_reads() && !IsFromInside(context_);
    has_place_ ? calls_.EnterReads(*method_, *this) : BeginRead();
  }
}

void ServerCall::OnRead(bool ok) {
  Leave();  // what handles its end is still there
  if (std::exchange(has_place_, false) && !calls_.LeaveReads(*method_, *this)) {
    return;  // it was refused, and ends
  }
  if (has_request_) {
    companion_->OnRead(ok);
  } else if (ok) {
    has_request_ = true;
    const absl::Status thrown = CatchThrown(method_->path, [this] {
      method_->handle(*this);
      return absl::OkStatus();
    });
    if (!thrown.ok()) {
      OUTRIDER_LOG(kError) << "a call failed in its handler: " << thrown;
      // The words are a library's, and may be of the process's own places.
      Finish({static_cast<grpc::StatusCode>(thrown.code()),
              "the call failed before it was begun; the server's log says "
              "why"});
    }
  } else {
    Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no request"});
  }
}

void ServerCall::OnFinished(bool /*ok*/) {
  if (!refusal_.ok()) {
    calls_.unread().Log(UnreadReason::kTurn, method_->path, refusal_);
  }
  Leave();
}

void ServerCall::OnDone(bool /*ok*/) {
  Companion* companion = nullptr;
  if (context_.IsCancelled()) {
    MutexLock lock(mu_);
    is_cancelled_ = true;
    companion = companion_.get();
  }
  if (companion != nullptr) companion->OnCancelled();
  Leave();
}

void ServerCall::Leave() {
  if (num_to_come_.fetch_sub(1) > 1) return;
  ServerCalls& calls = calls_;
  delete this;
  calls.Left();
}

}  // namespace outrider
