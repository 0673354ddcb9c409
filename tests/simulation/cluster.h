// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_CLUSTER_H_
#define OUTRIDER_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/session_id.h"
#include "core/sampling/coins.h"
#include "core/wire/model_identity.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/judgements.h"
#include "tests/simulation/network.h"
#include "tests/simulation/node_coverage.h"
#include "tests/simulation/session_watch.h"
#include "tests/simulation/simulated_node.h"
#include "tests/simulation/weak_protocol.h"
#include "tests/support/event_loop.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// What is done wrong on purpose, besides the protocol.
enum class Mistake {
  kNone,
  kDropsDraftsByToken,  // T4: a draft that begins with 0 is left out
  kRedoesRefusals,      // M16: a round without acceptance is done again
  kForgetsSteps,        // C1: DRAFT coins of all steps are one
  kKeepsSteps,          // a session that opens again keeps its step
  kRedrawsDrafts,       // one that has moved has other drafts
  kShutsGates,          // no moved session is ever let in
  kIgnoresDrains,       // sessions stay where it drains
  kCountsNoSuspects,    // of those that take verifiers down
  kKeepsOutcomes,       // drafts of an old drafter's are used at the next one
  kKeepsGivenUp,        // what was in flight counts as text that is cached
  kIsolatesNobody,      // suspects of several coordinators come together
  kNamesNoModel,        // a reply does not say what computed it
};

// What a run had, for those who ask whether it tried anything.
struct SimulationStats {
  int64_t num_rounds = 0;
  int64_t num_accepted = 0;
  int64_t num_misses = 0;
  int64_t num_reused = 0;  // tokens that another session had cached
  int64_t num_draft_failures = 0;
  int64_t num_hits = 0;      // rounds whose drafts were made ahead
  int64_t num_given_up = 0;  // calls ahead that were not waited for
  int64_t num_lies = 0;      // replies of drafters that were made wrong
  int64_t num_resumes = 0;
  int64_t num_refusals = 0;
  int64_t num_overdrafts = 0;  // steps with more drafts than a node takes
  int64_t num_preempted = 0;
  int64_t num_moves = 0;
  int64_t num_drafter_moves = 0;
  int64_t num_begun_anew = 0;  // as the model was gone
  int64_t num_poisoned = 0;    // streams that took their verifiers down
  int64_t num_messages = 0;
};

// Writes down the coins that drafts are drawn with: one has one question.
class DraftLedger {
 public:
  // False: this coin was flipped for another one before.
  bool Write(uint64_t seed, const CoinKey& key,
             absl::Span<const double> weights) {
    const auto [it, is_new] = questions_.try_emplace(
        {seed, key}, std::vector<double>(weights.begin(), weights.end()));
    return is_new || absl::MakeConstSpan(it->second) == weights;
  }

 private:
  std::map<std::pair<uint64_t, CoinKey>, std::vector<double>> questions_;
};

class SimulatedPool;

// The nodes of a run, and what its sessions share.
struct Cluster {
  using Verifier = SimulatedNode<VerifyNode>;
  using Drafter = SimulatedNode<DraftNode>;
  // The network's numbers of nodes: those of verifiers follow.
  static constexpr int kFirstVerifier = 10;

  EventLoop& loop;
  Network& network;
  WeakProtocol protocol = {};
  Mistake mistake = Mistake::kNone;
  std::vector<std::unique_ptr<Verifier>> verifiers = {};
  std::vector<std::unique_ptr<Drafter>> drafters = {};
  std::vector<SimulatedPool*> pools = {};  // one of each coordinator
  std::map<SessionId, SessionWatch> watches = {};
  Coverage coverage = {};
  bool has_poison = false;  // and nothing else takes nodes down
  NodeCoverage node_coverage = {};
  DraftLedger ledger = {};
  Judgements judgements = {};
  SimulationStats stats = {};
  std::string problem = {};  // the first one

  // What a verifier says that it is.
  static ModelIdentity IdentityOf(bool is_other_model) {
    return {.weights_hash = is_other_model ? "others" : "weights",
            .dtype = "float32",
            .numerics = "kernels"};
  }

  void Report(std::string what) {
    if (problem.empty()) problem = std::move(what);
  }
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_CLUSTER_H_
