// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_NODE_CORE_H_
#define OUTRIDER_TESTS_SUPPORT_NODE_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/check.h"
#include "core/engine/batch_scheduler.h"
#include "core/testing/run_scheduler.h"
#include "core/testing/table_lm.h"

namespace outrider::testing {

// A drafter or verifier without gRPC, threads and clock: production's engine
// and scheduler over a model, driven by whoever calls.
template <typename Engine>
class NodeCore {
 public:
  using Call = typename Engine::Call;
  using Reply = typename Engine::Reply;
  using Clock = BatchScheduler::Clock;

  NodeCore(std::unique_ptr<CausalLm> model, std::unique_ptr<Engine> engine,
           BatchScheduler::Options options)
      : model_(std::move(model)),
        engine_(std::move(engine)),
        scheduler_(options) {
    OUTRIDER_CHECK(model_->AllocateKvBlocks(options.sessions.num_blocks).ok());
  }

  void Submit(const Call& call, uint64_t content_digest, Clock::time_point now,
              std::function<void(absl::StatusOr<Reply>)> done) {
    const absl::Status status = engine_->Check(call);
    if (!status.ok()) return done(status);
    scheduler_.Submit(
        engine_->MakeWork(call, content_digest, {}, std::move(done)), now);
    BeginAdmitted(scheduler_, now);
  }
  // Runs whatever there is to run. A pass takes no time.
  void RunToEnd(Clock::time_point now) {
    while (BeginPass(now) > 0) EndPass(now);
    FinishAll(now);
  }
  // Other calls may come between these two. The rows that the pass runs: 0
  // where there is none to run.
  int BeginPass(Clock::time_point now) {
    pass_ = NextPass(scheduler_, now);
    return pass_ == nullptr ? 0 : pass_->num_rows;
  }
  void EndPass(Clock::time_point now) {
    num_shared_passes_ += pass_->parts.size() > 1 ? 1 : 0;
    scheduler_.EndPass(model_->Extend(pass_->extensions), now);
    OUTRIDER_CHECK(sessions().IsConsistent());
    FinishAll(now);
  }
  auto hold_end() const { return scheduler_.ask_again_at(); }
  absl::StatusOr<Reply> Run(const Call& call, uint64_t content_digest,
                            Clock::time_point now = {}) {
    std::optional<absl::StatusOr<Reply>> reply;
    Submit(call, content_digest, now, [&](auto done) { reply = done; });
    RunToEnd(now);
    OUTRIDER_CHECK(reply.has_value());
    return *std::move(reply);
  }

  bool Truncate(const RequestHeader& header, int length) {
    return scheduler_.Truncate(header, length);
  }
  bool Release(const RequestHeader& h) { return scheduler_.Release(h); }
  void Expire(Clock::time_point now) { scheduler_.Expire(now); }

  const NodeSessions& sessions() const { return scheduler_.sessions(); }
  int num_shared_passes() const { return num_shared_passes_; }
  const TableLm& table() const { return dynamic_cast<const TableLm&>(*model_); }
  // What the log says is cached, and what the model really has.
  TokenSeq Logged(const SessionId& id) const {
    const NodeSession* session = sessions().Find(id);
    if (session == nullptr) return {};
    const absl::Span<const TokenId> tokens = session->log.tokens();
    return {tokens.begin(), tokens.end()};
  }
  TokenSeq Cached(const SessionId& id) const {
    const NodeSession* session = sessions().Find(id);
    if (session == nullptr) return {};
    const auto* model = dynamic_cast<const TableLm*>(model_.get());
    return model == nullptr
               ? Logged(id)
               : model->Context(session->blocks, session->log.length());
  }

 private:
  void FinishAll(Clock::time_point now) {
    while (std::unique_ptr<Job> job = scheduler_.NextToTake()) {
      const Ending before = job->ending;
      job->Take();
      job->ending = before;  // less the real time
      scheduler_.Taken(std::move(job), now);
    }
    while (const std::unique_ptr<Job> job = scheduler_.NextEnded()) {
      job->Finish();
    }
    OUTRIDER_CHECK(sessions().IsConsistent());
  }

  const std::unique_ptr<CausalLm> model_;
  const std::unique_ptr<Engine> engine_;
  BatchScheduler scheduler_;
  const Pass* pass_ = nullptr;  // that runs
  int num_shared_passes_ = 0;   // with work of more than one session
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_NODE_CORE_H_
