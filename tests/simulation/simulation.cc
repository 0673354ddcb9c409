// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/session_suspicion.h"
#include "core/base/kv_block.h"
#include "core/base/quiet_log.h"
#include "core/wire/schedule.h"
#include "tests/simulation/hashed_models.h"
#include "tests/simulation/simulated_client.h"
#include "tests/simulation/simulated_pool.h"

namespace outrider::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kNumClients = 4;
constexpr Schedule kSchedules[] = {Schedule::kSequential, Schedule::kAhead,
                                   Schedule::kPredraft, Schedule::kAuto};
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
                 .mistake = options.mistake,
                 .has_poison = options.has_poison} {
    StartNodes();
    for (uint64_t i = 0; i < 1 + Draw(6) % 2; ++i) {
      pools_.push_back(std::make_unique<SimulatedPool>(cluster_));
      cluster_.pools.push_back(pools_.back().get());
    }
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
    LookForQuiet();
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
    for (const auto& client : clients_) client->CheckHistory();
    ForEachNode([this](const auto& node) {
      cluster_.node_coverage.Add(node.coverage());
    });
    cluster_.stats.num_messages = network_.num_messages();
    for (const auto& verifier : cluster_.verifiers) {
      cluster_.stats.num_preempted += verifier->num_preempted();
    }
    for (const auto& pool : pools_) {
      for (const auto& count : pool->moves().of_verifiers) {
        cluster_.stats.num_moves += count;
      }
      for (const auto& count : pool->moves().of_drafters) {
        cluster_.stats.num_drafter_moves += count;
      }
    }
    return {.problem = cluster_.problem,
            .stats = cluster_.stats,
            .coverage = cluster_.coverage,
            .node_coverage = cluster_.node_coverage};
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
    // Who is revived there must not have gone elsewhere (DrawFaults).
    const bool is_one = options_.seed % 3 == 0;
    const uint64_t num_verifiers = is_one ? 1 : 1 + Draw(3) % 3;
    for (uint64_t i = 0; i < num_verifiers; ++i) {
      Cluster::Verifier::Options node = {.protocol = options_.protocol};
      // Others than the first may take fewer drafts than rounds have, or have
      // too little memory for some texts.
      NodeDescription first = Description();
      if (i > 0) first.max_draft_tokens = 1 + Draw(70 + i) % 6;
      const bool is_small =
          i > 0 && Draw(80 + i) % 3 == 0 && !options_.has_room;
      const uint64_t own_blocks = is_small ? 5 + Draw(90 + i) % 4 : num_blocks;
      first.kv_cache_tokens = static_cast<int64_t>(own_blocks) * kKvBlockLength;
      // And any may come back as one that does.
      NodeDescription later = first;
      if (Draw(100 + i) % 2 == 0) later.max_draft_tokens = 1;
      const bool has_shrunk = i > 0 && Draw(110 + i) % 4 == 0;
      if (has_shrunk) later.kv_cache_tokens = 5 * kKvBlockLength;
      node.describe = [first, later](uint64_t num_lives) {
        return num_lives == 0 ? first : later;
      };
      node.start = [own = scheduling](const NodeDescription& said,
                                      const bool& is_broken) mutable {
        const bool is_other = said.identity() == Cluster::IdentityOf(true);
        own.sessions.num_blocks =
            static_cast<int>(said.kv_cache_tokens / kKvBlockLength);
        return MakeVerifyNode(
            HashedModel(is_other ? OtherTarget : HashedTarget, is_broken),
            {.max_draft_tokens = said.max_draft_tokens}, own);
      };
      node.computed = [this](const VerifyCall& call, const VerifyReply& reply,
                             bool is_other) {
        if (!cluster_.judgements.Write(call, reply, is_other)) {
          cluster_.Report("one round was judged twice, and not alike");
        }
      };
      if (options_.has_poison) {
        node.kills = [this](const RequestHeader& header) {
          return Kills(header);
        };
      }
      cluster_.verifiers.push_back(
          std::make_unique<Cluster::Verifier>(loop_, std::move(node)));
    }
    for (uint64_t i = 0; i < 1 + Draw(5) % 2; ++i) {
      Cluster::Drafter::Options node = {.protocol = options_.protocol};
      node.describe = [](uint64_t) { return Description(); };
      node.start = [this, scheduling](const NodeDescription&,
                                      const bool& is_broken) {
        return MakeDraftNode(HashedModel(HashedDraft, is_broken),
                             {.random_source =
                                  [this](uint64_t seed) {
                                    return std::make_unique<LedgerCoins>(
                                        cluster_, seed);
                                  }},
                             scheduling);
      };
      cluster_.drafters.push_back(
          std::make_unique<Cluster::Drafter>(loop_, std::move(node)));
    }
  }
  static NodeDescription Description() {
    const ModelIdentity model = Cluster::IdentityOf(/*is_other_model=*/false);
    return {
        .weights_hash = model.weights_hash,
        .vocab_size = kHashedVocabulary,
        .context_length = 256,
        .dtype = model.dtype,
        .max_draft_tokens = kDefaultMaxDraftTokens,
        .reply_formats = {std::begin(kReplyFormats), std::end(kReplyFormats)},
        .numerics = model.numerics,
        .max_outcomes = kMaxOutcomes};
  }
  // The last client's text takes down who computes it, once it has five tokens.
  bool Kills(const RequestHeader& header) {
    const auto& poison = *clients_.back();
    if (header.session != poison.session_id() || poison.num_received() < 5) {
      return false;
    }
    SessionWatch& watch = cluster_.watches[header.session];
    if (++watch.num_killed > SessionSuspicion::kMaxLost) {
      cluster_.Report("one stream has taken three verifiers down");
    }
    return true;
  }

  // Coupled twice, greedy and sampled: whose prompts may begin alike.
  void MakeClients() {
    const bool shares = Draw(4) % 2 == 0;
    for (int i = 0; i < kNumClients; ++i) {
      SimulatedClient::Request request = {
          .index = i,
          .seed = Draw(10 + i),
          .num_tokens = 24 + static_cast<int>(Draw(20 + i) % 40),
          .prompt_lookup = Draw(30 + i) % 4 == 0,
          .schedule = kSchedules[Draw(60 + i) % std::size(kSchedules)],
          .is_poison = options_.has_poison && i == kNumClients - 1};
      const int length = 1 + static_cast<int>(Draw(40 + i) % 60);
      for (int j = 0; j < length; ++j) {
        const uint64_t whose = shares ? 0 : i;
        request.prompt.push_back(static_cast<TokenId>(
            HashOf(options_.seed + whose, j) % kHashedVocabulary));
      }
      request.cache_salt = shares ? "all" : absl::StrCat("stream ", i);
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
    } else {
      const auto num_drafters = static_cast<int>(cluster_.drafters.size());
      const auto num_verifiers = static_cast<int>(cluster_.verifiers.size());
      const int i = fault.node % (num_drafters + num_verifiers);
      if (i < num_drafters) return StrikeNode(fault, *cluster_.drafters[i], i);
      const int verifier = i - num_drafters;
      StrikeNode(fault, *cluster_.verifiers[verifier],
                 Cluster::kFirstVerifier + verifier);
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
      case Fault::Kind::kDrain:
        return node.Drain(fault.time);
      case Fault::Kind::kReplace:
        return node.Replace(fault.time);
      case Fault::Kind::kLie:
        return node.Lie(fault.time);
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
    for (const auto& pool : pools_) pool->AskAll();
    if (!AreDone()) loop_.After(seconds(1), [this] { EverySecond(); });
  }
  void LookForQuiet() {
    for (const auto& pool : pools_) pool->AskQuiet();
    if (AreDone()) return;
    loop_.After(NodeGroup<VerifierNode>::kLookPeriod,
                [this] { LookForQuiet(); });
  }
  template <typename Function>
  void ForEachNode(Function function) {
    for (const auto& verifier : cluster_.verifiers) function(*verifier);
    for (const auto& drafter : cluster_.drafters) function(*drafter);
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
  std::vector<std::unique_ptr<SimulatedPool>> pools_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
  uint64_t num_drawn_ = 0;
};

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  const QuietLog quiet;
  return Simulation(options).Run();
}

SimulationOptions OptionsOf(uint64_t seed, int multiple) {
  SimulationOptions options = {.seed = seed};
  options.faults = DrawFaults(seed, /*num_nodes=*/5, multiple);
  options.has_poison = HashOf(seed, 2) % 8 == 0;
  if (options.has_poison) {
    // Where nodes are lost by other causes too, or the poison comes again as
    // another stream, others may be taken for it.
    std::erase_if(options.faults, [](const Fault& fault) {
      using Kind = Fault::Kind;
      return fault.kind != Kind::kRefuse && fault.kind != Kind::kEvict &&
             (fault.kind != Kind::kHangUp ||
              fault.node % kNumClients == kNumClients - 1);
    });
  }
  return options;
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
