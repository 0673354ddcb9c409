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
#include "coordinator/round/session.h"
#include "core/base/cancellation.h"
#include "core/base/task.h"
#include "core/wire/node_calls.h"
#include "core/wire/round_stats.h"
#include "tests/simulation/cluster.h"

namespace outrider::testing {

// A client and, for each stream that it opens, the session of a coordinator's:
// production's decoder and clients over simulated stubs. A stream that breaks
// is resumed with what was delivered, as the client library does. It looks at
// what comes, and reports what must not be.
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
  int num_received() const { return static_cast<int>(received_.size()); }

 private:
  class CheckedDraftStub;
  class PatientVerifyStub;
  class VaryingLength;
  class HastyDrafts;    // a mistake
  class RestlessScore;  // another

  Task<void> Run();
  Task<absl::Status> Stream(int attempt);
  // One round's tokens, as the coordinator sends them.
  void Receive(int first_index, absl::Span<const TokenId> tokens);
  // The log has only grown.
  void CheckLog(const Session& session, absl::Span<const TokenId> before);
  void Report(const std::string& problem);

  Cluster& cluster_;
  const Request request_;
  // What plain decoding gives; empty where the law alone is promised.
  const std::vector<TokenId> golden_;
  std::vector<TokenId> received_;
  SessionId session_id_;  // of the stream that runs, or ran last
  std::shared_ptr<Cancellation> cancellation_;  // of the same
  bool releases_ = true;
  bool has_given_up_ = false;
  bool is_done_ = false;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_SIMULATED_CLIENT_H_
