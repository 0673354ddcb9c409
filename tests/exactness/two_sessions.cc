// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/two_sessions.h"

#include <algorithm>
#include <cmath>
#include <coroutine>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/sampling/make_rule.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/run_task.h"
#include "tests/exactness/cluster_config.h"
#include "tests/exactness/enumerated_state.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

// The coins of one of the two: their keys are apart, as with two seeds.
class CoinsOfSession final : public RandomSource {
 public:
  CoinsOfSession(RandomSource& source, uint64_t seed)
      : source_(source), offset_(seed << 32) {}
  bool Accept(const CoinKey& key, double p, double q) override {
    return source_.Accept(Moved(key), p, q);
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    return source_.Categorical(Moved(key), weights);
  }
  size_t Race(uint64_t position, absl::Span<const TokenId> ids,
              absl::Span<const double> weights) override {
    return source_.Race(position + offset_, ids, weights);
  }

 private:
  CoinKey Moved(CoinKey key) const {
    key.position += offset_;
    return key;
  }

  RandomSource& source_;
  const uint64_t offset_;
};

// Submits a call and goes on once somebody has run the node.
template <typename Node>
class Answer {
 public:
  Answer(Node& node, const typename Node::Call& call)
      : node_(node), call_(call) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    node_.Submit(call_, ContentDigest(call_), {},
                 [this, waiting](absl::StatusOr<typename Node::Reply> reply) {
                   reply_ = std::move(reply);
                   waiting.resume();
                 });
  }
  absl::StatusOr<typename Node::Reply> await_resume() {
    return *std::move(reply_);
  }

 private:
  Node& node_;
  const typename Node::Call& call_;
  std::optional<absl::StatusOr<typename Node::Reply>> reply_;
};

class WaitingDraftStub final : public DraftStub {
 public:
  explicit WaitingDraftStub(DraftNode& node) : node_(node) {}
  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation&) override {
    co_return co_await Answer<DraftNode>(node_, call);
  }

 private:
  DraftNode& node_;
};

class WaitingVerifyStub final : public VerifyStub {
 public:
  explicit WaitingVerifyStub(VerifyNode& node) : node_(node) {}
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation&) override {
    co_return co_await Answer<VerifyNode>(node_, call);
  }

 private:
  VerifyNode& node_;
};

TokenSeq Prompt(const TwoSessionsConfig& config) {
  TokenSeq prompt(config.prompt_length, 0);
  for (size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(i % 3);
  }
  prompt[0] = kToyPrompt;
  return prompt;
}

// The pair of nodes and the two sessions, fed by one source of chance.
class Pair {
 public:
  Pair(const TwoSessionsConfig& config, const ToyModel& model,
       RandomSource& chance, int length)
      : config_(config), length_(length) {
    const auto coins = [&chance](uint64_t seed) {
      return std::make_unique<CoinsOfSession>(chance, seed);
    };
    BatchScheduler::Options scheduling = FewBlocks();
    scheduling.prefill_chunk = config.prefill_chunk;
    drafter_ = MakeDraftNode({.table =
                                  [&model](absl::Span<const TokenId> context) {
                                    return model.Drafter(context);
                                  },
                              .vocab_size = model.vocab_size()},
                             {.random_source = coins}, scheduling);
    verifier_ =
        MakeVerifyNode({.table =
                            [&model](absl::Span<const TokenId> context) {
                              return model.Target(context);
                            },
                        .vocab_size = model.vocab_size()},
                       {.random_source = coins}, scheduling);
    for (uint64_t seed = 0; seed < 2; ++seed) {
      sessions_.push_back(std::make_unique<Session>(
          Session::Options{.prompt = Prompt(config),
                           .sampling = config.sampling,
                           .rule = config.rule,
                           .seed = seed,
                           .max_length = kToyContextLength,
                           .cache_salt = config.salts[seed],
                           .random = coins(seed)}));
    }
  }

  // Both texts are long enough.
  bool IsDone() const {
    return NumGenerated(0) >= length_ && NumGenerated(1) >= length_;
  }

  // A round of each whose text is too short, at the same time.
  absl::Status Round() {
    WaitingDraftStub draft_stub(*drafter_);
    WaitingVerifyStub verify_stub(*verifier_);
    NodeDraftClient drafter(
        draft_stub, {.context_length = kToyContextLength,
                     .drafting = {.support_size = 16, .round_weights = false}});
    NodeVerifyClient verifier(verify_stub, config_.reply_format);
    const std::unique_ptr<const AcceptanceRule> rule =
        MakeRule(config_.rule, config_.sampling.lossy_lenience);
    FixedDraftLength policy(config_.draft_length);
    SpeculativeDecoder decoder({.drafter = drafter,
                                .verifier = verifier,
                                .rule = *rule,
                                .policy = policy});
    std::optional<absl::StatusOr<RoundResult>> results[2];
    for (int i = 0; i < 2; ++i) {
      if (NumGenerated(i) >= length_) continue;
      if (i == 1 && config_.is_second_late && !has_begun_) continue;
      StartDetached(StoreResult(decoder.Round(*sessions_[i]), results[i]));
    }
    has_begun_ = true;
    drafter_->RunToEnd({});
    verifier_->RunToEnd({});
    for (const auto& result : results) {
      if (!result.has_value()) continue;
      if (!result->ok()) return result->status();
      const RoundStats& stats = (*result)->stats;
      num_misses_ += stats.drafter.num_misses() + stats.verifier.num_misses();
      num_reused_ += stats.drafter.num_reused + stats.verifier.num_reused;
    }
    return absl::OkStatus();
  }

  TokenSeq Text(int i) const {
    const auto tokens =
        sessions_[i]->committed().tokens().subspan(config_.prompt_length);
    const auto count = std::min<size_t>(tokens.size(), length_);
    return {tokens.begin(), tokens.begin() + static_cast<long>(count)};
  }
  int num_misses() const { return num_misses_; }
  int64_t num_reused() const { return num_reused_; }
  // Passes in which there was more than one session.
  int num_shared_passes() const {
    return drafter_->num_shared_passes() + verifier_->num_shared_passes();
  }

  // All that the rounds to come depend on.
  std::vector<int64_t> Fingerprint() const {
    std::vector<int64_t> print;
    const auto add = [&](absl::Span<const TokenId> tokens) {
      print.insert(print.end(), tokens.begin(), tokens.end());
      print.push_back(-1);
    };
    for (int i = 0; i < 2; ++i) {
      const SessionId& id = sessions_[i]->id();
      add(sessions_[i]->committed().tokens());
      add(drafter_->Cached(id));
      add(verifier_->Cached(id));
      add(drafter_->Logged(id));
      add(verifier_->Logged(id));
    }
    return print;
  }

 private:
  int NumGenerated(int i) const {
    return sessions_[i]->length() - config_.prompt_length;
  }

  const TwoSessionsConfig& config_;
  const int length_;
  std::unique_ptr<DraftNode> drafter_;
  std::unique_ptr<VerifyNode> verifier_;
  std::vector<std::unique_ptr<Session>> sessions_;
  bool has_begun_ = false;  // the first one
  int num_misses_ = 0;
  int64_t num_reused_ = 0;
};

}  // namespace

TwoSessions EnumerateTwoSessions(const TwoSessionsConfig& config,
                                 const ToyModel& model, int length) {
  TwoSessions result;
  std::map<std::vector<int64_t>, EnumeratedState> states = {
      {{}, EnumeratedState{.probability = 1}}};
  while (!states.empty() && result.problem.empty()) {
    std::map<std::vector<int64_t>, EnumeratedState> next;
    for (const auto& [print, state] : states) {
      EnumeratingSource source(state.path);
      while (result.problem.empty() && source.NextTrace()) {
        Pair pair(config, model, source, length);
        for (int i = 0; i <= state.num_rounds; ++i) {
          const absl::Status status = pair.Round();
          if (!status.ok()) result.problem = status.ToString();
        }
        if (result.problem.empty()) result.problem = source.violation();
        ++result.num_leaves;
        result.num_misses += pair.num_misses();
        result.num_reused += pair.num_reused();
        result.num_shared_passes += pair.num_shared_passes();
        const double probability = state.probability * source.probability();
        if (pair.IsDone()) {
          result.law[{pair.Text(0), pair.Text(1)}] += probability;
          continue;
        }
        EnumeratedState& merged = next[pair.Fingerprint()];
        merged.probability += probability;
        merged.num_rounds = state.num_rounds + 1;
        merged.path = source.path();
      }
    }
    states = std::move(next);
  }
  return result;
}

double DifferenceFromPlain(const TwoSessions& sessions,
                           const TwoSessionsConfig& config,
                           const ToyModel& model, int length) {
  const Law plain =
      PlainLaw(model, config.sampling, Prompt(config), length, {});
  double difference = 0;
  double mass = 0;
  for (const auto& [a, p] : plain) {
    for (const auto& [b, q] : plain) {
      const auto it = sessions.law.find({a, b});
      const double found = it == sessions.law.end() ? 0 : it->second;
      mass += found;
      difference = std::max(difference, std::abs(found - p * q));
    }
  }
  double total = 0;
  for (const auto& [texts, probability] : sessions.law) total += probability;
  // What is outside of the plain law's texts is a difference too.
  return std::max({difference, std::abs(total - mass), std::abs(total - 1)});
}

}  // namespace outrider::testing
