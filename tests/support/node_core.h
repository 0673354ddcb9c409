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
#include "core/base/mutant.h"
#include "core/engine/batch_scheduler.h"
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
    if (!status.ok()) {
      done(status);
      return;
    }
    scheduler_.Submit(
        engine_->MakeWork(call, content_digest, {}, std::move(done)), now);
  }
  // Runs whatever there is to run. A pass takes no time.
  void RunToEnd(Clock::time_point now) {
    while (RunPass(now)) {
    }
    FinishAll(now);
  }
  bool RunPass(Clock::time_point now) {
    auto pass = scheduler_.NextPass(now);
    if (!pass.has_value()) return false;
    num_shared_passes_ += pass->parts.size() > 1 ? 1 : 0;
    PassResults rows = model_->Extend(pass->extensions);
    scheduler_.EndPass(*std::move(pass), std::move(rows), now);
    OUTRIDER_CHECK(OUTRIDER_MUTANT(E4, sessions().IsConsistent(), true));
    FinishAll(now);
    return true;
  }
  absl::StatusOr<Reply> Run(const Call& call, uint64_t content_digest,
                            Clock::time_point now = {}) {
    std::optional<absl::StatusOr<Reply>> reply;
    Submit(call, content_digest, now,
           [&](absl::StatusOr<Reply> done) { reply = std::move(done); });
    RunToEnd(now);
    OUTRIDER_CHECK(reply.has_value());
    return *std::move(reply);
  }

  bool Truncate(const RequestHeader& header, int length) {
    return scheduler_.Truncate(header, length);
  }
  bool Release(const RequestHeader& header) {
    return scheduler_.Release(header);
  }
  void Expire(Clock::time_point now) { scheduler_.Expire(now); }

  const NodeSessions& sessions() const { return scheduler_.sessions(); }
  // Passes with work of more than one session.
  int num_shared_passes() const { return num_shared_passes_; }
  const TableLm& table() const { return dynamic_cast<const TableLm&>(*model_); }
  // What the log says is cached, and what the model really has.
  TokenSeq Logged(const SessionId& id) const {
    const NodeSession* session = sessions().Find(id);
    if (session == nullptr) return {};
    return {session->log.tokens().begin(), session->log.tokens().end()};
  }
  TokenSeq Cached(const SessionId& id) const {
    const NodeSession* session = sessions().Find(id);
    if (session == nullptr) return {};
    const auto* model = dynamic_cast<const TableLm*>(model_.get());
    if (model == nullptr) return Logged(id);
    return model->Context(session->blocks, session->log.length());
  }

 private:
  void FinishAll(Clock::time_point now) {
    while (std::unique_ptr<Job> job = scheduler_.NextToTake()) {
      job->Take();
      scheduler_.Taken(std::move(job), now);
    }
    while (const std::unique_ptr<Job> job = scheduler_.NextEnded()) {
      job->Finish();
    }
    OUTRIDER_CHECK(OUTRIDER_MUTANT(E4, sessions().IsConsistent(), true));
  }

  const std::unique_ptr<CausalLm> model_;
  const std::unique_ptr<Engine> engine_;
  BatchScheduler scheduler_;
  int num_shared_passes_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_NODE_CORE_H_
