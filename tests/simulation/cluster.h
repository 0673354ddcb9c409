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
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/draft_length_control.h"
#include "core/sampling/coins.h"
#include "tests/support/event_loop.h"
#include "tests/simulation/network.h"
#include "tests/simulation/simulated_node.h"
#include "tests/simulation/weak_protocol.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// What is done wrong on purpose, besides the protocol.
enum class Mistake {
  kNone,
  kDropsDraftsByToken,  // T4: a draft that begins with 0 is left out
  kRedoesRefusals,      // M16: a round without acceptance is done again
  kForgetsSteps,        // C1: DRAFT coins of all steps are one
};

// What a run had, for those who ask whether it tried anything.
struct SimulationStats {
  int64_t num_rounds = 0;
  int64_t num_accepted = 0;
  int64_t num_misses = 0;
  int64_t num_reused = 0;  // tokens that another session had cached
  int64_t num_draft_failures = 0;
  int64_t num_resumes = 0;
  int64_t num_refusals = 0;
  int64_t num_preempted = 0;
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

// The nodes of a run, and what its sessions share.
struct Cluster {
  using Verifier = SimulatedNode<VerifyNode>;
  using Drafter = SimulatedNode<DraftNode>;
  static constexpr int kDrafterIndex = 0;  // verifiers have 1 and more

  EventLoop& loop;
  Network& network;
  WeakProtocol protocol = {};
  Mistake mistake = Mistake::kNone;
  std::vector<std::unique_ptr<Verifier>> verifiers = {};
  std::unique_ptr<Drafter> drafter = nullptr;
  CircuitBreaker breaker = {};
  DraftLengthControls controls = {};
  DraftLedger ledger = {};
  SimulationStats stats = {};
  std::string problem = {};  // the first one

  void Report(std::string what) {
    if (problem.empty()) problem = std::move(what);
  }
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_CLUSTER_H_
