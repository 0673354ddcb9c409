// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/toy_cluster.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "coordinator/peers/miss_recovery.h"
#include "core/sampling/make_rule.h"
#include "core/testing/run_task.h"

namespace outrider::testing {

// Shows each draft to the test, which may alter it.
class ToyCluster::TappedDrafts final : public DraftClient {
 public:
  TappedDrafts(DraftClient& client, ToyCluster& cluster)
      : client_(client), cluster_(cluster) {}

  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    absl::StatusOr<ProposedDraft> proposed =
        co_await client_.Propose(session, num_tokens);
    const auto& alter_hit = cluster_.config_.sabotage.alter_hit;
    if (proposed.ok() && alter_hit &&
        proposed->ahead.outcome == AheadStats::Outcome::kHit) {
      alter_hit(proposed->draft);
    }
    const auto& alter = cluster_.config_.sabotage.alter_draft;
    if (proposed.ok() && alter) alter(proposed->draft);
    if (proposed.ok()) cluster_.draft_ = proposed->draft;
    co_return proposed;
  }
  void DraftAhead(Session& session, const Draft& in_flight) override {
    client_.DraftAhead(session, in_flight);
  }
  void Learn(const RoundStats& round) override { client_.Learn(round); }

 private:
  DraftClient& client_;
  ToyCluster& cluster_;
};

// Keeps what the drafter made ahead, whose number the test may choose and which
// it may alter. What it took says the machine's clock, by which nothing may be
// chosen here.
class ToyCluster::TappedStub final : public DraftStub {
 public:
  TappedStub(DraftStub& drafter, ToyCluster& cluster)
      : drafter_(drafter), cluster_(cluster) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override {
    if (call.max_outcomes == 0) {
      co_return co_await drafter_.Draft(call, cancellation);
    }
    const Sabotage& sabotage = cluster_.config_.sabotage;
    DraftCall asked = call;
    if (sabotage.num_outcomes) {
      asked.max_outcomes =
          sabotage.num_outcomes(cluster_.view_, call.max_outcomes);
    }
    absl::StatusOr<DraftReply> reply =
        co_await drafter_.Draft(asked, cancellation);
    if (!reply.ok()) co_return reply;
    if (sabotage.alter_outcomes) sabotage.alter_outcomes(reply->outcomes);
    cluster_.outcomes_ = reply->outcomes;
    co_return reply;
  }

 private:
  DraftStub& drafter_;
  ToyCluster& cluster_;
};

// The production rule, or the test's.
class ToyCluster::TappedRule final : public AcceptanceRule {
 public:
  explicit TappedRule(ToyCluster& cluster) : cluster_(cluster) {}

  Verdict Judge(const Draft& draft, absl::Span<const TargetRow> target,
                RandomSource& random) const override {
    const auto& judge = cluster_.config_.sabotage.judge;
    return judge ? judge({.committed = cluster_.session_->committed().tokens(),
                          .draft = draft,
                          .rows = cluster_.rows_,
                          .random = random})
                 : MakeRule(cluster_.config_.rule,
                            cluster_.config_.sampling.lossy_lenience)
                       ->Judge(draft, target, random);
  }

 private:
  ToyCluster& cluster_;
};

class ToyCluster::ScriptedLength final : public DraftLengthPolicy {
 public:
  explicit ScriptedLength(const ToyCluster& cluster) : cluster_(cluster) {}

  int NextDraftLength(const Session& session) override {
    const ClusterConfig& config = cluster_.config_;
    if (cluster_.IsFirstRound()) return 0;
    const std::vector<int>& script = config.draft_lengths;
    int k = script[cluster_.num_rounds() % script.size()];
    if (config.sabotage.draft_length) {
      k = config.sabotage.draft_length(cluster_.view_, k);
    }
    return std::min(k, session.MaxDraftLength());
  }

 private:
  const ToyCluster& cluster_;
};

ToyCluster::ToyCluster(const ClusterConfig& config, const ToyModel& model,
                       RandomSource& chance)
    : ToyCluster(config, model,
                 config.sabotage.coins
                     ? config.sabotage.coins(chance)
                     : std::make_unique<BorrowedSource>(chance),
                 /*seed=*/0) {}

ToyCluster::ToyCluster(const ClusterConfig& config, const ToyModel& model,
                       uint64_t seed)
    : ToyCluster(config, model, nullptr, seed) {}

ToyCluster::ToyCluster(const ClusterConfig& config, const ToyModel& model,
                       std::unique_ptr<RandomSource> coins, uint64_t seed)
    : config_(config),
      model_(model),
      coins_(std::move(coins)),
      drafter_node_(NewDrafter()),
      verifier_node_(NewVerifier()) {
  draft_stub_ = std::make_unique<InProcessDraftStub>(*drafter_node_);
  draft_stub_->hooks() = {
      .num_deliveries = config.num_deliveries,
      .before = [this](const DraftCall& call) {
        const auto& is_cancelled = config_.sabotage.is_draft_cancelled;
        if (!is_cancelled || !is_cancelled(call)) return absl::OkStatus();
        drafter_node_->Truncate(call.header, call.header.delta.keep_length);
        return absl::AbortedError("a newer step has come");
      }};
  verify_stub_ = std::make_unique<InProcessVerifyStub>(*verifier_node_);
  verify_stub_->hooks() = {
      .num_deliveries = config.num_deliveries,
      .after = [this](const VerifyCall& call, VerifyReply& reply) {
        const auto& alter = config_.sabotage.after_verify;
        const absl::Status fate = alter ? alter(call, reply) : absl::OkStatus();
        const auto* rows = std::get_if<LogitRows>(&reply.outcome);
        if (rows != nullptr) rows_ = *rows;
        const auto& is_lost = config_.sabotage.is_verifier_lost;
        if (is_lost && is_lost(*this, call, reply)) {
          MoveVerifier();
          reply = ForgottenReply(call);
        }
        return fate;
      }};
  DraftOptions drafting = Apply(
      config.drafting,
      {.support_size = 0, .min_draft_probability = 0, .round_weights = false});
  if (drafting.support_size == 0) drafting.support_size = model.vocab_size();
  node_drafter_ = std::make_unique<NodeDraftClient>(
      DraftCalls(),
      NodeDraftClient::Options{.context_length = kToyContextLength,
                               .max_outcomes = config.max_outcomes,
                               .drafting = drafting});
  drafter_ = node_drafter_.get();
  if (config.schedule != Schedule::kSequential) {
    ahead_ = std::make_unique<ToyAhead>(*node_drafter_, config.schedule);
    drafter_ = &ahead_->client();
  }
  lookup_ =
      std::make_unique<LookupDraftClient>(*drafter_, DraftLengthMode::kFixed);
  if (config.prompt_lookup) drafter_ = lookup_.get();
  if (config.sabotage.drafts) {
    other_drafts_ = config.sabotage.drafts(*drafter_);
    drafter_ = other_drafts_.get();
  }

  Session::Options options = {.prompt = {kToyPrompt},
                              .sampling = config.sampling,
                              .rule = config.rule,
                              .seed = seed,
                              .max_length = config.max_length,
                              .end_tokens = config.eos_ids};
  if (coins_ != nullptr) {
    options.random = std::make_unique<BorrowedSource>(*coins_);
  }
  session_ = std::make_unique<Session>(std::move(options));
}

ToyCluster::~ToyCluster() = default;

std::unique_ptr<DraftNode> ToyCluster::NewDrafter() {
  DraftEngine::Options options = {.vocab_size = model_.vocab_size(),
                                  .context_length = kToyContextLength,
                                  .random_source = CoinFactory()};
  if (config_.ngrams.has_value()) {
    return MakeTextDraftNode(std::make_unique<NgramStrategy>(*config_.ngrams),
                             std::move(options));
  }
  return MakeDraftNode({.table =
                            [this](absl::Span<const TokenId> context) {
                              return model_.Drafter(context);
                            },
                        .vocab_size = model_.vocab_size(),
                        .cut = config_.sabotage.drafter_cut,
                        .answer = config_.draft_answer,
                        .guess = config_.draft_guess},
                       std::move(options));
}

std::unique_ptr<VerifyNode> ToyCluster::NewVerifier() {
  return MakeVerifyNode({.table =
                             [this](absl::Span<const TokenId> context) {
                               return model_.Target(context);
                             },
                         .vocab_size = model_.vocab_size(),
                         .cut = config_.sabotage.verifier_cut,
                         .answer = config_.answer},
                        {.random_source = CoinFactory()});
}

std::function<std::unique_ptr<RandomSource>(uint64_t)>
ToyCluster::CoinFactory() {
  if (coins_ == nullptr) return {};
  return [this](uint64_t) { return std::make_unique<BorrowedSource>(*coins_); };
}

DraftStub& ToyCluster::DraftCalls() {
  DraftStub* drafter = draft_stub_.get();
  if (config_.has_outcomes_by_the_book) {
    by_the_book_ = std::make_unique<OutcomesByTheBook>(OutcomesByTheBook::Parts{
        .drafter = *drafter,
        .new_drafter = [this] { return NewDrafter(); },
        .logits = [this](auto text) { return model_.Drafter(text); },
        .text = [this] { return session_->committed().tokens(); }});
    drafter = by_the_book_.get();
  }
  tapped_stub_ = std::make_unique<TappedStub>(*drafter, *this);
  return *tapped_stub_;
}

void ToyCluster::RestartDrafter() {
  std::unique_ptr<DraftNode> next = NewDrafter();
  draft_stub_->Restart(*next);
  drafter_node_ = std::move(next);
}

void ToyCluster::MoveVerifier() {
  if (other_verifier_ == nullptr) other_verifier_ = NewVerifier();
  std::swap(verifier_node_, other_verifier_);
  verify_stub_->Restart(*verifier_node_);
  verify_stub_->set_most_drafts(config_.most_drafts_elsewhere);
}

absl::StatusOr<Verdict> ToyCluster::Round() {
  stats_ = {};
  const auto& other = config_.sabotage.round;
  absl::StatusOr<Verdict> verdict = other ? other(*this) : DecoderRound();
  if (!verdict.ok()) return verdict;
  verdict_ = *verdict;
  view_ = {.round_index = view_.round_index + 1,
           .draft = &draft_,
           .verdict = &*verdict_,
           .rows = &rows_};
  return verdict;
}

std::vector<int64_t> ToyCluster::DraftersState() const {
  if (ahead_ == nullptr && !config_.prompt_lookup) return {};
  std::vector<int64_t> state = history_;
  for (const OutcomeDraft& outcome : outcomes_) {
    state.insert(state.end(), {-1, outcome.num_accepted, outcome.next_token});
    state.insert(state.end(), outcome.draft.tokens.begin(),
                 outcome.draft.tokens.end());
  }
  return state;
}

absl::StatusOr<Verdict> ToyCluster::DecoderRound() {
  TappedDrafts tapped(*drafter_, *this);
  FixedRunLength run(config_.run_length);
  NodeVerifyClient verifier(*verify_stub_, config_.reply_format, &run);
  const TappedRule rule(*this);
  ScriptedLength policy(*this);
  SpeculativeDecoder decoder({.drafter = tapped,
                              .verifier = verifier,
                              .rule = rule,
                              .policy = policy});
  if (IsFirstRound()) {
    const absl::StatusOr<ProposedDraft> fill =
        RunTask(drafter_->Propose(*session_, /*num_tokens=*/0));
    if (!fill.ok()) return fill.status();
  }
  const absl::StatusOr<RoundResult> round = RunTask(decoder.Round(*session_));
  if (!round.ok()) return round.status();
  stats_ = round->stats;
  history_.insert(history_.end(), {stats_.num_drafted, stats_.num_accepted,
                                   static_cast<int64_t>(stats_.ahead.outcome)});
  return round->verdict;
}

}  // namespace outrider::testing
