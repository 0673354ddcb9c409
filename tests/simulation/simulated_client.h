// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_SIMULATED_CLIENT_H_
#define OUTRIDER_TESTS_SIMULATION_SIMULATED_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coordinator/nodes/node_group.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_calls.h"
#include "core/wire/round_stats.h"
#include "core/wire/schedule.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/stream_history.h"

namespace outrider::testing {

// A client and, for each stream that it opens, the session of a coordinator's:
// production's decoder, clients and moves over simulated nodes. A stream that
// breaks is resumed with what was delivered, as the client library does. It
// looks at what comes, and reports what must not be.
class SimulatedClient {
 public:
  struct Request {
    int index = 0;
    std::vector<TokenId> prompt = {};
    SamplingParams sampling = {};
    RuleKind rule = RuleKind::kCoupled;
    ReplyFormat format = ReplyFormat::kTokens;
    uint64_t seed = 0;
    int num_tokens = 0;
    std::string cache_salt = {};
    bool prompt_lookup = false;
    Schedule schedule = Schedule::kSequential;
    bool is_poison = false;  // it takes verifiers down
  };

  SimulatedClient(Cluster& cluster, Request request);

  void Start() { StartDetached(Run()); }
  // Goes away in mid-stream and resumes; `kills` the coordinator too, which
  // then releases nothing.
  void HangUp(bool kills);
  // Ends it, whatever it has.
  void GiveUp();
  bool is_done() const { return is_done_; }
  const SessionId& session_id() const { return session_id_; }
  // Reports where no sequential execution explains what was seen of the stream.
  void CheckHistory();
  int num_received() const { return static_cast<int>(received_.size()); }

 private:
  class CheckedVerifyStub;

  Task<void> Run();
  Task<absl::Status> Stream(int attempt);
  // The coordinator's that has the stream: after a break it is the next one.
  SimulatedPool& Pool() const {
    return *cluster_.pools[(request_.index + attempt_) % cluster_.pools.size()];
  }
  Task<absl::Status> Decode(Session& session, SpeculativeDecoder& decoder);
  // A place at a verifier of the model that the stream has begun with.
  NodeGroup<VerifierNode>::Choice Assign();
  // What the coordinator says where there is none.
  absl::Status Unserved();
  // One round's tokens, as the coordinator sends them.
  void Receive(int first_index, absl::Span<const TokenId> tokens);
  // The log has only grown.
  void CheckLog(const Session& session, absl::Span<const TokenId> before);
  // The stream was ended for taking verifiers down.
  void CheckPoison();
  void Report(const std::string& problem);

  Cluster& cluster_;
  Request request_;              // its seed changes where it is begun anew
  bool is_other_model_ = false;  // that the stream began with
  // What plain decoding gives; empty where the law alone is promised.
  std::vector<TokenId> golden_;
  std::vector<TokenId> received_;
  int attempt_ = 0;
  StreamHistory history_;
  SessionId session_id_;  // of the stream that runs, or ran last
  std::shared_ptr<Cancellation> cancellation_;  // of the same
  int num_unserved_ = 0;  // attempts at coordinators with other models alone
  bool releases_ = true;
  bool has_given_up_ = false;
  bool is_done_ = false;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATED_CLIENT_H_
