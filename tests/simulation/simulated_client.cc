// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulated_client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/peers/lookup_draft_client.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/peers/optional_draft_client.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/base/retry_delay.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/make_rule.h"
#include "core/sampling/process.h"
#include "tests/simulation/hashed_models.h"
#include "tests/simulation/simulated_stub.h"

namespace outrider::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kContextLength = 256;
constexpr int kMaxAttempts = 60;

// Plain decoding, token by token.
std::vector<TokenId> Golden(const SimulatedClient::Request& request) {
  if (request.rule != RuleKind::kCoupled && !IsGreedy(request.sampling)) {
    return {};
  }
  Coins coins(request.seed);
  std::vector<TokenId> text = request.prompt;
  for (int i = 0; i < request.num_tokens; ++i) {
    const Distribution p =
        *Process(HashedTarget(text), request.sampling,
                 {.committed = text,
                  .prompt_length = static_cast<int>(request.prompt.size())});
    text.push_back(DrawCoupled(p, text.size(), coins));
  }
  return {text.begin() + static_cast<int>(request.prompt.size()), text.end()};
}

int CommittedLength(const RequestHeader& header) {
  return header.delta.keep_length +
         static_cast<int>(header.delta.append_tokens.size());
}

}  // namespace

// What came from the drafter last.
class SimulatedClient::CheckedDraftStub final : public DraftStub {
 public:
  explicit CheckedDraftStub(Cluster& cluster)
      : stub_({.loop = cluster.loop,
               .network = cluster.network,
               .node = *cluster.drafter,
               .index = Cluster::kDrafterIndex,
               .protocol = cluster.protocol}) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override {
    was_asked_ = true;
    offered_.reset();
    absl::StatusOr<DraftReply> reply = co_await stub_.Ask(call, cancellation);
    if (!reply.ok() || call.max_draft_tokens == 0 ||
        !CheckEcho(call.header, reply->header).ok()) {
      co_return reply;
    }
    if (const auto* draft = std::get_if<outrider::Draft>(&reply->outcome)) {
      offered_ = *draft;
    }
    co_return reply;
  }
  void Release(const RequestHeader& header) {
    if (was_asked_) stub_.Release(header);
  }
  // Rule 8: a draft that came is judged, whatever its tokens are.
  bool IsJudgedBy(const VerifyCall& call) const {
    return !offered_.has_value() ||
           static_cast<int>(offered_->start) != CommittedLength(call.header) ||
           offered_->tokens == call.draft_tokens;
  }

 private:
  SimulatedStub<Cluster::Drafter> stub_;
  bool was_asked_ = false;
  std::optional<outrider::Draft> offered_;
};

// Sends a step again, with the same bytes, where it got no answer.
class SimulatedClient::PatientVerifyStub final : public VerifyStub {
 public:
  PatientVerifyStub(SimulatedClient& client, const CheckedDraftStub& drafts,
                    int attempt)
      : client_(client),
        drafts_(drafts),
        stub_(WayOf(client.cluster_, client.request_.index + attempt)) {}

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) override {
    if (!drafts_.IsJudgedBy(call)) client_.Report("a draft was not judged");
    if (scored_length_ == CommittedLength(call.header)) {
      client_.Report("a round that was scored is done again");
    }
    Cluster& cluster = client_.cluster_;
    milliseconds pause(10);
    for (int num_failures = 0;;) {
      absl::StatusOr<VerifyReply> reply =
          co_await stub_.Ask(call, cancellation);
      if (cancellation.cancelled()) co_return reply;
      if (IsRefusal(reply.status())) {
        ++cluster.stats.num_refusals;
        co_await cluster.loop.Sleep(*RetryDelayOf(reply.status()));
        continue;
      }
      const bool may_come_yet = absl::IsUnavailable(reply.status()) ||
                                absl::IsDeadlineExceeded(reply.status());
      if (may_come_yet && ++num_failures < 5) {
        co_await cluster.loop.Sleep(pause);
        pause *= 3;
        continue;
      }
      if (reply.ok() && !std::holds_alternative<Miss>(reply->outcome) &&
          CheckEcho(call.header, reply->header).ok()) {
        scored_length_ = CommittedLength(call.header);
      }
      co_return reply;
    }
  }
  void Release(const RequestHeader& header) { stub_.Release(header); }

 private:
  static SimulatedStub<Cluster::Verifier>::Way WayOf(Cluster& cluster,
                                                     int choice) {
    const int i = choice % static_cast<int>(cluster.verifiers.size());
    return {.loop = cluster.loop,
            .network = cluster.network,
            .node = *cluster.verifiers[i],
            .index = i + 1,
            .protocol = cluster.protocol};
  }

  SimulatedClient& client_;
  const CheckedDraftStub& drafts_;
  SimulatedStub<Cluster::Verifier> stub_;
  int scored_length_ = -1;  // of the text whose next tokens were scored
};

// Another K each round, 0 included.
class SimulatedClient::VaryingLength final : public DraftLengthPolicy {
 public:
  explicit VaryingLength(uint64_t seed) : seed_(seed) {}
  int NextDraftLength(const Session& session) override {
    const int k = static_cast<int>(HashOf(seed_, ++num_rounds_) % 6);
    return std::min(k, session.MaxDraftLength());
  }

 private:
  const uint64_t seed_;
  uint64_t num_rounds_ = 0;
};

class SimulatedClient::HastyDrafts final : public DraftClient {
 public:
  HastyDrafts(DraftClient& drafts, Mistake mistake)
      : drafts_(drafts), mistake_(mistake) {}
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    absl::StatusOr<ProposedDraft> proposed =
        co_await drafts_.Propose(session, num_tokens);
    if (mistake_ == Mistake::kDropsDraftsByToken && proposed.ok() &&
        proposed->draft.length() > 0 && proposed->draft.tokens[0] == 0) {
      proposed->draft = Draft::None(session.length());
    }
    co_return proposed;
  }
  void Learn(const RoundStats& round) override { drafts_.Learn(round); }

 private:
  DraftClient& drafts_;
  const Mistake mistake_;
};

class SimulatedClient::RestlessScore final : public VerifyClient {
 public:
  RestlessScore(VerifyClient& verifier, Mistake mistake)
      : verifier_(verifier), mistake_(mistake) {}
  Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                          const Draft& draft) override {
    absl::StatusOr<ScoredDraft> scored =
        co_await verifier_.Score(session, draft);
    if (mistake_ == Mistake::kRedoesRefusals && scored.ok() &&
        draft.length() > 0 && scored->score.verdict.has_value() &&
        scored->score.verdict->num_accepted == 0) {
      co_return co_await verifier_.Score(session, draft);
    }
    co_return scored;
  }

 private:
  VerifyClient& verifier_;
  const Mistake mistake_;
};

SimulatedClient::SimulatedClient(Cluster& cluster, Request request)
    : cluster_(cluster),
      request_(std::move(request)),
      golden_(Golden(request_)) {}

void SimulatedClient::HangUp(bool kills) {
  if (cancellation_ == nullptr) return;
  releases_ = !kills;
  cancellation_->Cancel();
}

void SimulatedClient::GiveUp() {
  has_given_up_ = true;
  if (cancellation_ != nullptr) cancellation_->Cancel();
}

Task<void> SimulatedClient::Run() {
  absl::Status status;
  for (int attempt = 0; !has_given_up_; ++attempt) {
    if (attempt == kMaxAttempts) {
      Report(absl::StrCat("the stream does not end: ", status.ToString()));
      break;
    }
    if (attempt > 0) {
      ++cluster_.stats.num_resumes;
      co_await cluster_.loop.Sleep(milliseconds(20) * std::min(attempt, 50));
    }
    status = co_await Stream(attempt);
    if (status.ok()) break;
  }
  if (status.ok() && !has_given_up_ && num_received() != request_.num_tokens) {
    Report(absl::StrCat("the stream ended after ", num_received(), " tokens"));
  }
  is_done_ = true;
}

Task<absl::Status> SimulatedClient::Stream(int attempt) {
  releases_ = true;
  cancellation_ = std::make_shared<Cancellation>();
  const std::string id = absl::StrCat("stream ", request_.index, "/", attempt,
                                      std::string(16, ' '));
  session_id_ = SessionId::FromBytes(id.substr(0, 16));
  Session session({.id = session_id_,
                   .prompt = request_.prompt,
                   .delivered = received_,
                   .sampling = request_.sampling,
                   .rule = request_.rule,
                   .seed = request_.seed,
                   .max_length = static_cast<int>(request_.prompt.size()) +
                                 request_.num_tokens,
                   .cache_salt = request_.cache_salt,
                   .cancellation = cancellation_});
  CheckedDraftStub draft_stub(cluster_);
  PatientVerifyStub verify_stub(*this, draft_stub, attempt);
  NodeDraftClient node_drafter(
      draft_stub,
      {.context_length = kContextLength, .drafting = kGenerationDraftOptions});
  const DraftLengthMode mode =
      request_.seed % 2 == 0 ? DraftLengthMode::kFixed : DraftLengthMode::kAuto;
  OptionalDraftClient optional(
      [&](Session&) {
        return std::optional(OptionalDraftClient::Drafter{
            .node = node_drafter,
            .breaker = cluster_.breaker,
            .control = cluster_.controls.Of(request_.rule, request_.sampling)});
      },
      mode);
  LookupDraftClient lookup(optional, mode);
  DraftClient* const drafts =
      request_.prompt_lookup ? static_cast<DraftClient*>(&lookup) : &optional;
  HastyDrafts drafter(*drafts, cluster_.mistake);
  NodeVerifyClient node_verifier(verify_stub, request_.format);
  RestlessScore verifier(node_verifier, cluster_.mistake);
  const auto rule = MakeRule(request_.rule, /*lossy_lenience=*/1);
  VaryingLength policy(request_.seed + attempt);
  SpeculativeDecoder decoder({.drafter = drafter,
                              .verifier = verifier,
                              .rule = *rule,
                              .policy = policy});
  absl::Status status;
  while (!session.is_complete() && !session.cancellation().cancelled()) {
    const absl::Span<const TokenId> log = session.committed().tokens();
    const std::vector<TokenId> before(log.begin(), log.end());
    const absl::StatusOr<RoundResult> round = co_await decoder.Round(session);
    CheckLog(session, before);
    status = round.status();
    if (!status.ok()) break;
    const RoundStats& stats = round->stats;
    ++cluster_.stats.num_rounds;
    cluster_.stats.num_accepted += stats.num_accepted;
    cluster_.stats.num_misses +=
        stats.drafter.num_misses + stats.verifier.num_misses;
    cluster_.stats.num_reused +=
        stats.drafter.num_reused + stats.verifier.num_reused;
    cluster_.stats.num_draft_failures += stats.drafter.num_failures;
    Receive(static_cast<int>(before.size()) - session.prompt_length(),
            session.committed().From(static_cast<int>(before.size())));
  }
  if (session.cancellation().cancelled()) status = absl::CancelledError();
  co_await optional.Stop(session);
  if (releases_) {
    draft_stub.Release(session.AdvisoryHeader(session.drafter_cache()));
    verify_stub.Release(session.AdvisoryHeader(session.verifier_cache()));
  }
  co_return status;
}

void SimulatedClient::Receive(int first_index,
                              absl::Span<const TokenId> tokens) {
  if (first_index != num_received()) {
    Report(absl::StrCat("tokens from ", first_index, " on came after ",
                        num_received()));
    return;
  }
  for (const TokenId token : tokens) {
    const size_t i = received_.size();
    if (!golden_.empty() && (i >= golden_.size() || token != golden_[i])) {
      Report(absl::StrCat("token ", i, " is ", token, ", plain decoding gives ",
                          i < golden_.size() ? golden_[i] : -1));
    }
    received_.push_back(token);
  }
}

void SimulatedClient::CheckLog(const Session& session,
                               absl::Span<const TokenId> before) {
  const absl::Span<const TokenId> now = session.committed().tokens();
  if (now.size() < before.size() || now.first(before.size()) != before) {
    Report("the log has lost tokens");
  }
}

void SimulatedClient::Report(const std::string& problem) {
  cluster_.Report(absl::StrCat("client ", request_.index, " at ",
                               cluster_.loop.elapsed() / milliseconds(1),
                               " ms: ", problem));
}

}  // namespace outrider::testing
