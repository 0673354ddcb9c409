// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_MODEL_REACTOR_H_
#define OUTRIDER_CORE_NODE_MODEL_REACTOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "core/base/log.h"
#include "core/base/retry_delay.h"
#include "core/node/model_thread.h"
#include "core/rpc/metadata_limits.h"
#include "core/rpc/status_convert.h"

namespace outrider {

// A few rounds of the sessions that fill the queue; callers add jitter.
inline constexpr std::chrono::milliseconds kFullQueueRetryDelay(100);

// Handles a unary call when the model is free: `handle` returns the status to
// finish with; it fills the response before. The reaction runs it itself where
// the model is idle, and never waits. A caller that has gone by then costs
// nothing. Each call is counted, as one of this `kind`.
//
// `auto`, as a template's name begins with its result's, and those that begin
// with `grpc::` are none of ours to tests/tsan.supp.
template <typename Handle>
auto RunOnModelThread(grpc::CallbackServerContext* context,
                      ModelThread& model_thread, NodeCall kind, Handle handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = CheckMetadata(*context); !status.ok()) {
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }
  NodeCounters& counters = model_thread.counters();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point submitted = Clock::now();
  counters.Submitted();
  const bool accepted =
      model_thread.Submit([context, reactor, kind, &counters, submitted,
                           handle = std::move(handle)]() mutable {
        const Clock::time_point start = Clock::now();
        counters.Started(kind, start - submitted);
        const absl::Status status =
            context->IsCancelled() ? absl::CancelledError() : handle();
        if (absl::IsInternal(status)) {
          OUTRIDER_LOG(kError) << "a session failed: " << status;
        }
        // Before the reply: a caller that reads the counters after it finds
        // itself in them.
        counters.Finished(kind, status.code(), Clock::now() - start);
        reactor->Finish(ToGrpcStatus(status));
      });
  if (!accepted) {
    counters.Refused(kind);
    reactor->Finish(ToGrpcStatus(WithRetryDelay(
        absl::ResourceExhaustedError(
            "this node's queue is full: try again later, or another node"),
        kFullQueueRetryDelay)));
  }
  return reactor;
}

inline grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context,
                                           const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_MODEL_REACTOR_H_
