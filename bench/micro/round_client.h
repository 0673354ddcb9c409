// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_ROUND_CLIENT_H_
#define OUTRIDER_BENCH_MICRO_ROUND_CLIENT_H_

#include <chrono>
#include <memory>
#include <string>

#include "bench/micro/alone_verify_stub.h"
#include "bench/micro/grpc_echo.h"
#include "bench/micro/simulated_nodes.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/pool/grpc_draft_stub.h"
#include "coordinator/pool/grpc_verify_stub.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/base/check.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/sampling/make_rule.h"

namespace outrider {

// One user's rounds, one after the other.
class RoundClient {
 public:
  struct Addresses {
    std::string drafter;
    std::string verifier;
  };

  // `run` says how many tokens a call without drafts brings; null: one.
  RoundClient(const Addresses& addresses, int k, CallQueue& queue,
              RunLength* run = nullptr)
      : queue_(queue),
        draft_stub_(MakeChannel(addresses.drafter), StubOptions()),
        verify_stub_(MakeChannel(addresses.verifier), StubOptions()),
        drafter_(draft_stub_, {.context_length = kSimulatedContext}),
        verifier_(alone_, ReplyFormat::kTokens, run),
        rule_(MakeRule(RuleKind::kRejection, 1)),
        policy_(k),
        decoder_({.drafter = drafter_,
                  .verifier = verifier_,
                  .rule = *rule_,
                  .policy = policy_}),
        session_({.prompt = {1},
                  .sampling = {.temperature = 0},
                  .seed = 7,
                  .max_length = kSimulatedContext}) {
    draft_stub_.set_vocab_size(kSimulatedVocab);
    verify_stub_.set_vocab_size(kSimulatedVocab);
  }

  // Dies where it fails.
  Task<void> Round() {
    const auto result = co_await decoder_.Round(session_);
    OUTRIDER_CHECK(result.ok()) << result.status();
    stats_ = result->stats;
  }

  const Session& session() const { return session_; }
  CallBytes drafter_bytes() const { return BytesOf(stats_.drafter); }
  CallBytes verifier_bytes() const { return BytesOf(stats_.verifier); }

 private:
  template <typename Stats>
  static CallBytes BytesOf(const Stats& stats) {
    return {.request = stats.sent_bytes,
            .reply = stats.wire_bytes - stats.sent_bytes};
  }
  GrpcNodeOptions StubOptions() {
    return {.queue = queue_,
            .timeout = std::chrono::seconds(60),
            .timeout_per_token = std::chrono::milliseconds(1)};
  }

  CallQueue& queue_;
  GrpcDraftStub draft_stub_;
  GrpcVerifyStub verify_stub_;
  AloneVerifyStub alone_{verify_stub_};
  NodeDraftClient drafter_;
  NodeVerifyClient verifier_;
  const std::unique_ptr<const AcceptanceRule> rule_;
  FixedDraftLength policy_;
  SpeculativeDecoder decoder_;
  Session session_;
  RoundStats stats_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_ROUND_CLIENT_H_
