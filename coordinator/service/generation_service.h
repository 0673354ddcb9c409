// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_SERVICE_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_SERVICE_H_

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/control/run_length.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/round/session.h"
#include "coordinator/service/coordinator_metrics.h"
#include "coordinator/service/generation_request.h"
#include "coordinator/service/grpc_call_name.h"
#include "coordinator/service/grpc_response_writer.h"
#include "coordinator/service/open_streams.h"
#include "coordinator/service/quarantine.h"
#include "coordinator/service/running_generations.h"
#include "coordinator/service/worker.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/rpc_service.h"
#include "core/tokenizer/tokenizer.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider {

// GenerationService: validates a request, gives it a pair of nodes, and runs
// its rounds as a coroutine. Thread-safe.
class GenerationServiceImpl final : public RpcService {
 public:
  struct Options {
    int max_sessions = 256;
    // A client that reads nothing for so long is dropped.
    std::chrono::milliseconds client_patience = std::chrono::seconds(60);
    // A resume waits so long for a verifier: this coordinator may be cut off.
    std::chrono::milliseconds resume_patience = std::chrono::seconds(15);
    int default_draft_tokens = 4;  // where a fixed number is wanted
    DraftLengthMode default_draft_length_mode = DraftLengthMode::kAuto;
    Schedule default_schedule = Schedule::kSequential;
    bool default_prompt_lookup = false;
    int max_plain_tokens = MeasuredRunLength::kDefaultMost;
    DraftOptions default_draft_options = kGenerationDraftOptions;
    std::optional<ReplyFormat> default_reply_format = {};  // empty: by the rule
  };
  struct Parts {
    NodePool& pool;
    CallQueue& queue;
    const Tokenizer* tokenizer = nullptr;  // null: token prompts only
    CoordinatorMetrics& metrics;
  };

  GenerationServiceImpl(Parts parts, Options options);
  // All generations must have ended: see Drain.
  ~GenerationServiceImpl() override = default;

  std::vector<RpcMethod> Methods() override;

  static constexpr std::chrono::seconds kLastWords{1};  // of what is cancelled
  // Takes no more generations; waits for those that run and for clients to read
  // what they gave, `longest` (or kLastWords) altogether, and cancels in time
  // for it. False where some do not even end then: destroying this would hang.
  bool Drain(std::chrono::milliseconds longest);

 private:
  // What Run and Serve share of one call.
  struct Call {
    // Of it there is what is still needed: nothing once it cannot begin anew.
    v1::GenerateRequest& proto;
    const CallName& name;
    ResponseWriter& writer;
    CoordinatorMetrics::Tally& tally;
  };

  void Generate(ServerCall& call, v1::GenerateRequest request);
  void Describe(ServerCall& call) const;
  absl::StatusOr<GenerationRequest> Parse(const v1::GenerateRequest& proto,
                                          const SessionNodes& nodes) const;
  absl::StatusOr<GenerationRequest> Admit(const SessionNodes& nodes,
                                          const Call& call) const;
  Task<void> Run(v1::GenerateRequest proto, CallName name,
                 ResponseWriter& writer,
                 std::shared_ptr<Cancellation> cancellation);
  // kReplaced: another model took the place of the nodes' before anything was
  // told, which serves the request as well.
  enum class Outcome { kEnded, kReplaced };
  // Has left its nodes when it returns.
  Task<Outcome> RunOnNodes(const Call& call,
                           const std::shared_ptr<Cancellation>& cancellation,
                           bool is_first);
  // What is new is refused at once where no verifier is ready.
  Task<absl::StatusOr<SessionNodes>> Assign(const SessionId& session,
                                            const Call& call,
                                            Cancellation& cancellation);
  // Runs all rounds. OK where the client was told the end.
  Task<absl::StatusOr<FinishReason>> Serve(const GenerationRequest& request,
                                           const SessionNodes& nodes,
                                           const Call& call, Session& session);
  // Ends a call that has had no round.
  void Refuse(const Call& call, const absl::Status& status);
  // Counts and logs; what was convicted goes into quarantine.
  void Ended(const Call& call, const Session& session,
             const absl::StatusOr<FinishReason>& result);

  const Parts parts_;
  const Options options_;
  RunningGenerations running_;
  OpenStreams streams_;
  Quarantine quarantine_;
  // Requests are read there, as texts may be long. No more wait than run.
  Worker preparing_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_SERVICE_H_
