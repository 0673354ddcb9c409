// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulated_client.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/nodes/session_drafter.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/nodes/session_verifier.h"
#include "coordinator/peers/ahead_draft_client.h"
#include "coordinator/peers/lookup_draft_client.h"
#include "coordinator/peers/miss_recovery.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/peers/optional_draft_client.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/make_rule.h"
#include "core/sampling/process.h"
#include "tests/simulation/hashed_models.h"
#include "tests/simulation/mistaken_clients.h"
#include "tests/simulation/simulated_pool.h"
#include "tests/simulation/varying_length.h"

namespace outrider::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxAttempts = 100;
// After so many in a row where other models alone are ready it is begun anew.
constexpr int kMostUnserved = 20;

// Plain decoding, token by token.
std::vector<TokenId> Golden(const SimulatedClient::Request& request,
                            bool is_other_model) {
  if (request.rule != RuleKind::kCoupled && !IsGreedy(request.sampling)) {
    return {};
  }
  Coins coins(request.seed);
  std::vector<TokenId> text = request.prompt;
  for (int i = 0; i < request.num_tokens; ++i) {
    const Distribution p =
        *Process(is_other_model ? OtherTarget(text) : HashedTarget(text),
                 request.sampling,
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

// What the session asks of its verifier, whichever that is, and the mistakes
// that could be made with it.
class SimulatedClient::CheckedVerifyStub final : public VerifyStub {
 public:
  CheckedVerifyStub(SimulatedClient& client, SessionVerifier& verifier)
      : client_(client), verifier_(verifier) {}

  int MostDrafts(int n) const override { return verifier_.MostDrafts(n); }
  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) override {
    VerifyCall sent = call;
    MakeMistake(sent);
    CheckDrafts(sent);
    if (scored_length_ == CommittedLength(call.header)) {
      client_.Report("a round that was scored is done again");
    }
    absl::StatusOr<VerifyReply> reply =
        co_await verifier_.Verify(sent, cancellation);
    last_step_ = sent.header.step;
    if (!reply.ok()) co_return reply;
    if (reply->header.step == sent.header.step) {
      reply->header.step = call.header.step;
    }
    if (!std::holds_alternative<Miss>(reply->outcome) &&
        CheckEcho(call.header, reply->header).ok()) {
      scored_length_ = CommittedLength(call.header);
      has_begun_ = true;
    }
    co_return reply;
  }

 private:
  void MakeMistake(VerifyCall& call) const {
    const bool opens_again = has_begun_ && call.header.incarnation.is_none();
    const Mistake mistake = client_.cluster_.mistake;
    if (!opens_again) return;
    if (mistake == Mistake::kKeepsSteps) call.header.step = last_step_;
    if (mistake == Mistake::kRedrawsDrafts && !call.draft_tokens.empty()) {
      call.draft_tokens[0] = (call.draft_tokens[0] + 1) % kHashedVocabulary;
    }
  }
  // Rule 8: a draft that came is judged, whatever its tokens are; and no other.
  void CheckDrafts(const VerifyCall& call) const {
    SessionWatch& watch = client_.cluster_.watches[call.header.session];
    const int most = watch.MostDrafts(CommittedLength(call.header), *this);
    const Draft* const fitting = watch.Fitting();
    const absl::Span<const TokenId> judged = call.draft_tokens;
    // What is looked up in the text comes before what was drafted ahead.
    if (client_.request_.prompt_lookup && !watch.HasInTurn()) return;
    if (fitting == nullptr) {
      if (!judged.empty()) client_.Report("a draft of another text is judged");
      return;
    }
    // What was drafted ahead, or for another verifier, may be more.
    const int length = std::min({fitting->length(), watch.num_asked, most});
    if (judged != absl::MakeConstSpan(fitting->tokens).first(length)) {
      client_.Report("a draft was not judged");
    }
  }

  SimulatedClient& client_;
  SessionVerifier& verifier_;
  bool has_begun_ = false;
  uint64_t last_step_ = 0;
  int scored_length_ = -1;  // of the text whose next tokens were scored
};

SimulatedClient::SimulatedClient(Cluster& cluster, Request request)
    : cluster_(cluster), request_(std::move(request)) {}

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
    if (IsPoison(status)) CheckPoison();
    if (absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)) {
      Report(absl::StrCat("a verifier's limits end it: ", status.ToString()));
    }
    if (status.ok() || (IsPoison(status) && request_.is_poison)) break;
    if (absl::IsAborted(status)) {
      // What is delivered cannot be continued.
      ++cluster_.stats.num_begun_anew;
      CheckHistory();
      history_ = {};
      received_.clear();
      request_.seed = HashOf(request_.seed, attempt);
    }
  }
  if (status.ok() && !has_given_up_ && num_received() != request_.num_tokens) {
    Report(absl::StrCat("the stream ended after ", num_received(), " tokens"));
  }
  is_done_ = true;
}

NodeGroup<VerifierNode>::Choice SimulatedClient::Assign() {
  return Pool().ChooseVerifier(session_id_, [&](const VerifierNode&,
                                                const NodeDescription& answer) {
    return received_.empty() || CheckSame(Cluster::IdentityOf(is_other_model_),
                                          answer.identity(), Sameness::kLaw)
                                    .ok();
  });
}

absl::Status SimulatedClient::Unserved() {
  const bool has_others =
      Pool().ChooseVerifier(session_id_, {}).seat != nullptr;
  num_unserved_ = has_others ? num_unserved_ + 1 : 0;
  // The model may come back, and others may have it: it is not given up at
  // once.
  if (num_unserved_ < kMostUnserved) {
    return absl::UnavailableError("no verifier");
  }
  num_unserved_ = 0;
  return absl::AbortedError("only other models are ready");
}

Task<absl::Status> SimulatedClient::Stream(int attempt) {
  releases_ = true;
  attempt_ = attempt;
  cancellation_ = std::make_shared<Cancellation>();
  const std::string id = absl::StrCat("stream ", request_.index, "/", attempt,
                                      std::string(16, ' '));
  session_id_ = SessionId::FromBytes(id.substr(0, 16));
  auto choice = Assign();
  if (choice.seat == nullptr) co_return Unserved();
  num_unserved_ = 0;
  is_other_model_ = choice.description.identity() == Cluster::IdentityOf(true);
  SessionWatch& watch = cluster_.watches[session_id_];
  watch.is_other_model = is_other_model_;
  watch.text = request_.prompt;
  watch.text.insert(watch.text.end(), received_.begin(), received_.end());
  if (received_.empty()) {
    golden_ = Golden(request_, is_other_model_);
    history_ = {};  // nothing of it was seen
  }
  history_.Begins(request_.seed, received_);
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
  SessionVerifier session_verifier(Pool(), session_id_, std::move(choice.seat),
                                   choice.description);
  SessionDrafter session_drafter(Pool(), session_id_,
                                 Pool().ChooseDrafter(session_id_, {}));
  const DraftLengthMode mode =
      request_.seed % 2 == 0 ? DraftLengthMode::kFixed : DraftLengthMode::kAuto;
  OptionalDraftClient optional(
      [&](Session& one) {
        return session_drafter.Choose(one, kGenerationDraftOptions,
                                      request_.schedule);
      },
      mode);
  AheadDraftClient ahead(optional, request_.schedule);
  LookupDraftClient lookup(ahead, mode);
  DraftClient* const drafts =
      request_.prompt_lookup ? static_cast<DraftClient*>(&lookup) : &ahead;
  HastyDrafts drafter(*drafts, cluster_);
  CheckedVerifyStub verify_stub(*this, session_verifier);
  FixedRunLength run(1 + static_cast<int>(request_.seed / 2 % 4));
  NodeVerifyClient node_verifier(verify_stub, request_.format, &run);
  RestlessScore verifier(node_verifier, cluster_.mistake);
  const auto rule = MakeRule(request_.rule, /*lossy_lenience=*/1);
  VaryingLength policy(request_.seed + attempt);
  SpeculativeDecoder decoder({.drafter = drafter,
                              .verifier = verifier,
                              .rule = *rule,
                              .policy = policy});
  absl::Status status = co_await Decode(session, decoder);
  co_await ahead.Stop(session);
  if (releases_) {
    session_drafter.Release(session.AdvisoryHeader(session.drafter_cache()));
    session_verifier.Release(session.AdvisoryHeader(session.verifier_cache()));
  }
  co_return status;
}

Task<absl::Status> SimulatedClient::Decode(Session& session,
                                           SpeculativeDecoder& decoder) {
  const int number = history_.num_sessions() - 1;
  while (!session.is_complete() && !session.cancellation().cancelled()) {
    const absl::Span<const TokenId> log = session.committed().tokens();
    const std::vector<TokenId> before(log.begin(), log.end());
    const absl::StatusOr<RoundResult> round = co_await decoder.Round(session);
    CheckLog(session, before);
    if (!round.ok() && session.cancellation().cancelled()) break;
    if (!round.ok()) co_return round.status();
    const RoundStats& stats = round->stats;
    ++cluster_.stats.num_rounds;
    cluster_.stats.num_accepted += stats.num_accepted;
    cluster_.stats.num_misses +=
        stats.drafter.num_misses() + stats.verifier.num_misses();
    cluster_.stats.num_reused +=
        stats.drafter.num_reused + stats.verifier.num_reused;
    cluster_.stats.num_draft_failures += stats.drafter.num_failures;
    cluster_.stats.num_hits +=
        stats.ahead.outcome == AheadStats::Outcome::kHit ? 1 : 0;
    const int first_index =
        static_cast<int>(before.size()) - session.prompt_length();
    const absl::Span<const TokenId> block =
        session.committed().From(static_cast<int>(before.size()));
    history_.Committed(number, first_index, block);
    history_.Received(number, first_index, block);
    Receive(first_index, block);
    if (session.committed().From(session.prompt_length()) != received_) {
      Report("the client has another text than the log");
    }
  }
  if (session.cancellation().cancelled()) co_return absl::CancelledError();
  co_return absl::OkStatus();
}

void SimulatedClient::CheckHistory() {
  const std::string problem =
      history_.Problem(/*is_text_promised=*/!golden_.empty());
  if (!problem.empty()) Report(problem);
}

void SimulatedClient::CheckPoison() {
  ++cluster_.stats.num_poisoned;
  // Elsewhere the run's faults may lose two nodes under any stream.
  if (!request_.is_poison && cluster_.has_poison) {
    Report("a stream is ended for what another one did");
  }
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
  SessionWatch& watch = cluster_.watches[session_id_];
  watch.text.insert(watch.text.end(), tokens.begin(), tokens.end());
  watch.num_asked = 0;
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
