// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/pool_metrics.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace outrider {
namespace {

void AddNodes(const std::string& peer,
              const std::function<int(NodeState)>& count,
              MetricRegistry& registry) {
  const std::pair<NodeState, std::string> states[] = {
      {NodeState::kReady, "ready"},
      {NodeState::kNotReady, "not_ready"},
      {NodeState::kRefused, "refused"},
      {NodeState::kLeaving, "leaving"}};
  for (const auto& [state, name] : states) {
    registry.AddSource(
        {.name = "nodes",
         .help = "Nodes by state: ready; not_ready: silent or draining; "
                 "refused: they do not fit; leaving: gone from their name, "
                 "with sessions still on them.",
         .labels = {{"peer", peer}, {"state", name}},
         .read = [count, state = state]() -> double { return count(state); }});
  }
}

void AddMoves(SessionMoves& moves, MetricRegistry& registry) {
  const auto add = [&](const std::string& peer, SessionMoves::Counts& counts) {
    for (const MoveReason reason : kMoveReasons) {
      const auto& count = counts[static_cast<int>(reason)];
      registry.AddSource(
          {.name = "session_moves_total",
           .help = "Sessions that went on at another node, by what became of "
                   "theirs: lost, late, draining, replaced by another model, "
                   "outgrown by the text, or failed at a step; found: there "
                   "was no drafter before.",
           .kind = MetricRegistry::Kind::kCounter,
           .labels = {{"peer", peer}, {"reason", NameOf(reason)}},
           .read = [&count] { return static_cast<double>(count.load()); }});
    }
  };
  add("drafter", moves.of_drafters);
  add("verifier", moves.of_verifiers);
  registry.AddSource(
      {.name = "moves_to_other_kernels_total",
       .help = "Moves to a verifier that accumulates in another order, as no "
               "equal one was left: the last bits of logits may differ.",
       .kind = MetricRegistry::Kind::kCounter,
       .read = [&moves] {
         return static_cast<double>(moves.num_to_other_kernels.load());
       }});
  registry.AddSource(
      {.name = "sessions_undrafted_total",
       .help = "Sessions that draft no more, as two drafters were lost under "
               "their calls.",
       .kind = MetricRegistry::Kind::kCounter,
       .read = [&moves] {
         return static_cast<double>(moves.num_undrafted.load());
       }});
  registry.AddSource(
      {.name = "sessions_held",
       .help = "Running generations that wait for a verifier to go on.",
       .read = [&moves]() -> double { return moves.num_held; }});
}

int CountModels(const NodePool::Overview& overview) {
  std::set<std::pair<std::string, std::string>> models;
  for (const NodeDescription& verifier : overview.verifiers) {
    models.emplace(verifier.weights_hash, verifier.dtype);
  }
  return static_cast<int>(models.size());
}

bool HasSimulated(const NodePool::Overview& overview) {
  const auto is_simulated = [](const NodeDescription& node) {
    return node.is_simulated;
  };
  return std::ranges::any_of(overview.verifiers, is_simulated) ||
         std::ranges::any_of(overview.drafters, is_simulated);
}

}  // namespace

void AddPoolMetrics(NodePool& pool, size_t num_drafters_configured,
                    MetricRegistry& registry) {
  const auto drafters = [&pool](NodeState state) {
    return pool.CountDrafters(state);
  };
  const auto verifiers = [&pool](NodeState state) {
    return pool.CountVerifiers(state);
  };
  AddNodes("drafter", drafters, registry);
  AddNodes("verifier", verifiers, registry);
  registry.AddSource({.name = "spec_engaged",
                      .help = "1 while some drafter is ready, else 0.",
                      .read = [drafters] {
                        return drafters(NodeState::kReady) > 0 ? 1.0 : 0.0;
                      }});
  registry.AddSource({.name = "verifiers_ready",
                      .help = "Verifiers that answer and fit.",
                      .read = [verifiers]() -> double {
                        return verifiers(NodeState::kReady);
                      }});
  registry.AddSource(
      {.name = "verifier_models",
       .help = "Different weights and number types of the "
               "verifiers that are ready; 2 in a roll-out.",
       .read = [&pool]() -> double { return CountModels(pool.Describe()); }});
  registry.AddSource({.name = "requests_waiting",
                      .help = "Generations that wait for room on a verifier.",
                      .read = [&pool]() -> double {
                        return pool.waiting_room().num_waiting();
                      }});
  registry.AddSource(
      {.name = "simulated",
       .help = "1 while some node has a timing model for weights, else 0.",
       .read = [&pool] { return HasSimulated(pool.Describe()) ? 1.0 : 0.0; }});
  AddMoves(pool.moves(), registry);
  registry.AddGauge("drafters_configured", "Drafters named by flags.")
      .Set(static_cast<double>(num_drafters_configured));
}

}  // namespace outrider
