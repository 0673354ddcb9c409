// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/enumeration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/round/stop_condition.h"
#include "tests/exactness/enumerated_state.h"

namespace outrider::testing {
namespace {

// All that the rounds to come depend on.
std::vector<int64_t> Fingerprint(ToyCluster& cluster) {
  std::vector<int64_t> print;
  const auto add = [&](absl::Span<const TokenId> tokens) {
    print.insert(print.end(), tokens.begin(), tokens.end());
    print.push_back(-1);
  };
  Session& session = cluster.session();
  const SessionId& id = session.id();
  add(session.committed().tokens());
  add(cluster.drafter().Cached(id));
  add(cluster.verifier().Cached(id));
  add(cluster.drafter().Logged(id));
  add(cluster.verifier().Logged(id));
  if (cluster.other_verifier() != nullptr) {
    add(cluster.other_verifier()->Cached(id));
    add(cluster.other_verifier()->Logged(id));
  }
  print.push_back(session.drafter_cache().length());
  print.push_back(session.verifier_cache().length());
  return print;
}

class Enumerator {
 public:
  Enumerator(const ClusterConfig& config, const ToyModel& model, int length)
      : config_(config),
        model_(model),
        stop_({.eos_ids = config.eos_ids, .max_length = 1 + length}) {}

  Enumeration Run() {
    states_[{0, {}}] = {.probability = 1};
    while (!states_.empty() && result_.problem.empty()) {
      // A round makes the text longer: nothing leads to the shortest any more.
      const auto shortest = states_.extract(states_.begin());
      Expand(shortest.mapped());
    }
    return std::move(result_);
  }

 private:
  // Runs the state's next round in every way it can go.
  void Expand(const EnumeratedState& state) {
    EnumeratingSource source(state.path, config_.reuse);
    while (result_.problem.empty() && source.NextTrace()) {
      ToyCluster cluster(config_, model_, source);
      for (int i = 0; i < state.num_rounds; ++i) {
        if (!RunRound(cluster)) return;
      }
      const int length_before = cluster.session().length();
      if (!RunRound(cluster)) return;
      ++result_.num_leaves;
      result_.problem = source.violation();
      const double probability = state.probability * source.probability();
      Count(cluster.stats(), probability);
      if (EmitIfEnded(cluster, length_before, probability)) continue;
      std::vector<int64_t> print = Fingerprint(cluster);
      print.push_back(PhaseAfter(state.num_rounds + 1));
      const std::vector<int64_t> drafters = cluster.DraftersState();
      print.insert(print.end(), drafters.begin(), drafters.end());
      if (config_.sabotage.memory) {
        const auto memory = config_.sabotage.memory(cluster.draft_client());
        print.insert(print.end(), memory.begin(), memory.end());
      }
      if (config_.reuse == EnumeratingSource::Reuse::kShareUniform) {
        // What is known of a coin's number is part of the state.
        print.assign(source.path().begin(), source.path().end());
      }
      Merge(cluster.session().length(), std::move(print),
            {.probability = probability,
             .num_rounds = state.num_rounds + 1,
             .path = source.path()});
    }
  }

  // What the rounds to come see of how many there have been: a mistake that a
  // test builds in may count them, the engine's own text does not.
  int64_t PhaseAfter(int num_rounds) const {
    if (!config_.sabotage.IsNone()) return num_rounds;
    return num_rounds % static_cast<int64_t>(config_.draft_lengths.size());
  }

  // Every way to a state counts, and the shortest is run again from there.
  void Merge(int length, std::vector<int64_t> print, EnumeratedState state) {
    const auto [at, is_new] =
        states_.try_emplace({length, std::move(print)}, std::move(state));
    if (is_new) return;
    EnumeratedState& merged = at->second;
    merged.probability += state.probability;
    if (state.num_rounds < merged.num_rounds) {
      merged.num_rounds = state.num_rounds;
      merged.path = std::move(state.path);
    }
  }

  bool RunRound(ToyCluster& cluster) {
    const absl::StatusOr<Verdict> verdict = cluster.Round();
    if (!verdict.ok()) result_.problem = verdict.status().ToString();
    return verdict.ok();
  }

  void Count(const RoundStats& stats, double probability) {
    result_.num_misses +=
        stats.drafter.num_misses() + stats.verifier.num_misses();
    result_.expected_accepted += probability * stats.num_accepted;
    result_.expected_drafted += probability * stats.num_drafted;
    if (stats.ahead.outcome == AheadStats::Outcome::kHit) {
      result_.expected_hits += probability;
    }
  }

  bool EmitIfEnded(ToyCluster& cluster, int length_before, double probability) {
    const absl::Span<const TokenId> tokens =
        cluster.session().committed().tokens();
    const StopCondition::BlockEnd end =
        stop_.Find(tokens.subspan(length_before), length_before);
    if (!end.reason.has_value()) return false;
    const auto last = tokens.begin() + length_before + end.num_kept;
    result_.law[{tokens.begin() + 1, last}] += probability;
    return true;
  }

  const ClusterConfig& config_;
  const ToyModel& model_;
  const StopCondition stop_;
  // Keyed by the length of the text and by the fingerprint.
  std::map<std::pair<int, std::vector<int64_t>>, EnumeratedState> states_;
  Enumeration result_;
};

double MassOf(const Law& law, const TokenSeq& text) {
  const auto it = law.find(text);
  return it == law.end() ? 0.0 : it->second;
}

}  // namespace

Enumeration Enumerate(const ClusterConfig& config, const ToyModel& model,
                      int length) {
  return Enumerator(config, model, length).Run();
}

Difference Compare(const Law& law, const Law& right) {
  std::set<TokenSeq> texts;
  for (const auto& [text, mass] : law) texts.insert(text);
  for (const auto& [text, mass] : right) texts.insert(text);
  Difference result;
  double total = 0;
  for (const TokenSeq& text : texts) {
    const double mass = MassOf(law, text);
    const double difference = std::abs(mass - MassOf(right, text));
    result.max_difference = std::max(result.max_difference, difference);
    result.total_variation += difference / 2;
    total += mass;
    if (MassOf(right, text) == 0) result.impossible_mass += mass;
  }
  result.mass_error = std::abs(total - 1);
  return result;
}

Law FirstToken(const Law& law) {
  Law first;
  for (const auto& [text, mass] : law) first[{text[0]}] += mass;
  return first;
}

}  // namespace outrider::testing
