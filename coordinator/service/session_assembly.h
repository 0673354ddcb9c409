// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_SESSION_ASSEMBLY_H_
#define OUTRIDER_COORDINATOR_SERVICE_SESSION_ASSEMBLY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/control/run_length.h"
#include "coordinator/peers/ahead_draft_client.h"
#include "coordinator/peers/lookup_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/peers/optional_draft_client.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "coordinator/round/stop_condition.h"
#include "coordinator/service/generation.h"
#include "coordinator/service/generation_request.h"
#include "coordinator/service/text_stream.h"
#include "core/base/task.h"
#include "core/sampling/acceptance_rule.h"
#include "core/tokenizer/tokenizer.h"

namespace outrider {

// The objects that serve one session, each made for its request and its pair
// of nodes. What it is made from must outlive it.
class SessionAssembly {
 public:
  struct Parts {
    const GenerationRequest& request;
    const SessionNodes& nodes;
    const Tokenizer* tokenizer = nullptr;  // null: no text
    Session& session;
    GenerationSink& sink;
    int max_plain_tokens = 1;  // that a call without drafts may draw
  };

  explicit SessionAssembly(const Parts& parts);
  SessionAssembly(const SessionAssembly&) = delete;
  SessionAssembly& operator=(const SessionAssembly&) = delete;

  // Runs the generation; nothing of it goes on when this returns.
  Task<absl::StatusOr<GenerationUpdate>> Run();

 private:
  Session& session_;
  // Each uses some of those above it.
  OptionalDraftClient optional_drafter_;
  AheadDraftClient ahead_drafter_;
  LookupDraftClient lookup_;
  MeasuredRunLength run_;
  NodeVerifyClient verifier_;
  const std::unique_ptr<const AcceptanceRule> rule_;
  FixedDraftLength policy_;
  SpeculativeDecoder decoder_;
  const StopCondition stop_;
  TextStream text_;
  Generation generation_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_SESSION_ASSEMBLY_H_
