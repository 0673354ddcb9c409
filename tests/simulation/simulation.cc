// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "tests/simulation/hashed_models.h"
#include "tests/simulation/simulated_client.h"

namespace outrider::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kNumClients = 4;
constexpr int64_t kMaxEvents = 400'000;
// Faults last at most 40 s, leases 30 s; nobody waits for much more.
constexpr seconds kLongest{1200};

// The production coins, whose DRAFT ones are written down.
class LedgerCoins final : public RandomSource {
 public:
  LedgerCoins(Cluster& cluster, uint64_t seed)
      : cluster_(cluster), seed_(seed), coins_(seed) {}

  bool Accept(const CoinKey& key, double p, double q) override {
    return coins_.Accept(key, p, q);
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    CoinKey used = key;
    if (cluster_.mistake == Mistake::kForgetsSteps) used.generation = 0;
    if (!cluster_.ledger.Write(seed_, used, weights)) {
      cluster_.Report("one DRAFT coin has drawn from two rows");
    }
    return coins_.Categorical(used, weights);
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return coins_.Race(position, ids, weights);
  }

 private:
  Cluster& cluster_;
  const uint64_t seed_;
  Coins coins_;
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        network_(loop_, options.seed, options.faults),
        cluster_{.loop = loop_,
                 .network = network_,
                 .protocol = options.protocol,
                 .mistake = options.mistake} {
    StartNodes();
    MakeClients();
    for (const Fault& fault : options.faults) {
      if (fault.is_of_message()) continue;
      loop_.After(microseconds(fault.at), [this, &fault] { Strike(fault); });
    }
  }

  SimulationResult Run() {
    for (const auto& client : clients_) {
      loop_.After(microseconds(Draw(1000 + num_drawn_) % 20'000),
                  [&client] { client->Start(); });
      ++num_drawn_;
    }
    EverySecond();
    int64_t num_events = 0;
    while (!IsOver() && num_events < kMaxEvents && loop_.RunOne()) {
      ++num_events;
      CheckCaches();
    }
    if (!AreDone()) {
      cluster_.Report(absl::StrCat("a stream has not ended after ", num_events,
                                   " events, ", loop_.elapsed() / seconds(1),
                                   " s"));
    }
    End();
    cluster_.stats.num_messages = network_.num_messages();
    for (const auto& verifier : cluster_.verifiers) {
      cluster_.stats.num_preempted += verifier->num_preempted();
    }
    return {.problem = cluster_.problem, .stats = cluster_.stats};
  }

 private:
  uint64_t Draw(uint64_t what) const { return HashOf(options_.seed + 7, what); }

  // Some seeds have little memory, some two verifiers.
  void StartNodes() {
    const bool is_tight = Draw(1) % 3 == 0 && !options_.has_room;
    const uint64_t num_blocks = is_tight ? 12 + Draw(2) % 8 : 64;
    const BatchScheduler::Options scheduling = {
        .prefill_chunk = 32,
        .sessions = {.num_blocks = static_cast<int>(num_blocks)}};
    for (uint64_t i = 0; i < 1 + Draw(3) % 2; ++i) {
      cluster_.verifiers.push_back(std::make_unique<Cluster::Verifier>(
          loop_,
          Cluster::Verifier::Options{.start =
                                         [scheduling](const bool& is_broken) {
                                           return MakeVerifyNode(
                                               ModelOf(HashedTarget, is_broken),
                                               {}, scheduling);
                                         },
                                     .protocol = options_.protocol}));
    }
    cluster_.drafter = std::make_unique<Cluster::Drafter>(
        loop_, Cluster::Drafter::Options{
                   .start =
                       [this, scheduling](const bool& is_broken) {
                         return MakeDraftNode(
                             ModelOf(HashedDraft, is_broken),
                             {.random_source =
                                  [this](uint64_t seed) {
                                    return std::make_unique<LedgerCoins>(
                                        cluster_, seed);
                                  }},
                             scheduling);
                       },
                   .protocol = options_.protocol});
  }
  static TableLm::Options ModelOf(
      std::vector<float> (*table)(absl::Span<const TokenId>),
      const bool& is_broken) {
    return {.table =
                [table, &is_broken](absl::Span<const TokenId> context) {
                  std::vector<float> logits = table(context);
                  if (is_broken) {
                    logits[0] = std::numeric_limits<float>::quiet_NaN();
                  }
                  return logits;
                },
            .vocab_size = kHashedVocabulary,
            .context_length = 256};
  }

  // Coupled twice, greedy and sampled: whose prompts may begin alike.
  void MakeClients() {
    const bool shares = Draw(4) % 2 == 0;
    for (int i = 0; i < kNumClients; ++i) {
      SimulatedClient::Request request = {
          .index = i,
          .seed = Draw(10 + i),
          .num_tokens = 24 + static_cast<int>(Draw(20 + i) % 40),
          .prompt_lookup = Draw(30 + i) % 4 == 0};
      const int length = 1 + static_cast<int>(Draw(40 + i) % 60);
      for (int j = 0; j < length; ++j) {
        const uint64_t whose = shares ? 0 : i;
        request.prompt.push_back(static_cast<TokenId>(
            HashOf(options_.seed + whose, j) % kHashedVocabulary));
      }
      if (shares) request.cache_salt = "all";
      request.sampling.temperature = i == 2 ? 0 : 0.9;
      request.rule = i < 2 ? RuleKind::kCoupled : RuleKind::kRejection;
      constexpr ReplyFormat kFormats[] = {
          ReplyFormat::kTokens, ReplyFormat::kFull, ReplyFormat::kSparse};
      request.format = kFormats[Draw(50 + i) % (i < 2 ? 2 : 3)];
      clients_.push_back(
          std::make_unique<SimulatedClient>(cluster_, std::move(request)));
    }
  }

  void Strike(const Fault& fault) {
    if (fault.kind == Fault::Kind::kStandStill) {
      loop_.StandStill(fault.time);
    } else if (fault.kind == Fault::Kind::kHangUp) {
      clients_[fault.node % kNumClients]->HangUp(fault.time.count() % 2 == 0);
    } else if (const int num = static_cast<int>(cluster_.verifiers.size());
               fault.node % (num + 1) == Cluster::kDrafterIndex) {
      StrikeNode(fault, *cluster_.drafter, Cluster::kDrafterIndex);
    } else {
      const int index = fault.node % (num + 1);
      StrikeNode(fault, *cluster_.verifiers[index - 1], index);
    }
  }
  template <typename Node>
  void StrikeNode(const Fault& fault, Node& node, int index) {
    switch (fault.kind) {
      case Fault::Kind::kCrash:
        return node.Crash(fault.time);
      case Fault::Kind::kPause:
        return node.Pause(fault.time);
      case Fault::Kind::kDeaf:
        return network_.Deafen(index, fault.time);
      case Fault::Kind::kDumb:
        return network_.Silence(index, fault.time);
      case Fault::Kind::kRefuse:
        return node.Refuse(fault.time);
      case Fault::Kind::kEvict:
        return node.Evict();
      case Fault::Kind::kNanRow:
        return node.BreakNextPass();
      default:
        return;
    }
  }

  void EverySecond() {
    ForEachNode([](auto& node) { node.Expire(); });
    if (!AreDone()) loop_.After(seconds(1), [this] { EverySecond(); });
  }
  template <typename Function>
  void ForEachNode(Function function) {
    for (const auto& verifier : cluster_.verifiers) function(*verifier);
    function(*cluster_.drafter);
  }

  bool AreDone() const {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](const auto& client) { return client->is_done(); });
  }
  bool IsOver() const {
    return AreDone() || !cluster_.problem.empty() || loop_.elapsed() > kLongest;
  }

  // What the sessions' logs say is cached is what the blocks hold.
  void CheckCaches() {
    ForEachNode([this](auto& node) {
      for (int i = 0; i < kNumClients; ++i) {
        const SessionId id = clients_[i]->session_id();
        if (node.core().Logged(id) != node.core().Cached(id)) {
          cluster_.Report(absl::StrCat("client ", i,
                                       "'s blocks hold others' "
                                       "tokens"));
        }
      }
    });
  }

  // Everybody leaves, and a lease later all memory is free.
  void End() {
    for (const auto& client : clients_) client->GiveUp();
    while (!AreDone() && loop_.RunOne()) {
    }
    while (loop_.RunOne()) {
    }
    loop_.StandStill(seconds(60));
    ForEachNode([this](auto& node) {
      node.Expire();
      const NodeSessions& sessions = node.core().sessions();
      if (sessions.num_sessions() > 0 ||
          sessions.blocks().num_free() != sessions.blocks().num_total()) {
        cluster_.Report("blocks are owned after the last lease");
      }
    });
  }

  const SimulationOptions& options_;
  EventLoop loop_;
  Network network_;
  Cluster cluster_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
  uint64_t num_drawn_ = 0;
};

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  return Simulation(options).Run();
}

SimulationOptions OptionsOf(uint64_t seed) {
  return {.seed = seed, .faults = DrawFaults(seed, /*num_nodes=*/3)};
}

std::string Explain(SimulationOptions options) {
  std::string problem = Simulate(options).problem;
  for (size_t i = 0; i < options.faults.size();) {
    SimulationOptions fewer = options;
    fewer.faults.erase(fewer.faults.begin() + static_cast<int>(i));
    const std::string still = Simulate(fewer).problem;
    if (still.empty()) {
      ++i;
    } else {
      options = std::move(fewer);
      problem = still;
    }
  }
  return absl::StrCat("seed ", options.seed, ": ", problem, ", with ",
                      options.faults.size(), " faults\n",
                      ToString(options.faults));
}

}  // namespace outrider::testing
