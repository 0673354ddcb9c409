// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/generation_service.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/session_errors.h"
#include "coordinator/service/await_verifier.h"
#include "coordinator/service/client_status.h"
#include "coordinator/service/describe_convert.h"
#include "coordinator/service/generation.h"
#include "coordinator/service/generation_tally.h"
#include "coordinator/service/prompt.h"
#include "coordinator/service/session_assembly.h"
#include "coordinator/service/writer_sink.h"
#include "core/base/error_reason.h"
#include "core/base/log.h"
#include "core/base/log_limiter.h"
#include "core/base/monotonic_clock.h"
#include "core/base/status_macros.h"
#include "core/base/thrown_status.h"
#include "core/rpc/status_convert.h"
#include "core/wire/generation_convert.h"

namespace outrider {
namespace {

// What is cancelled ends with its calls, within moments.
constexpr std::chrono::seconds kLongestCancelled(5);
// One long text does not keep all others waiting then.
constexpr int kPreparingThreads = 2;

// Of a session that has had no round.
GenerationUpdate FirstUpdate(const GenerationRequest& request,
                             const SessionNodes& nodes,
                             const Session& session) {
  return {
      .start =
          GenerationStart{
              .seed = request.seed,
              .prompt_length = session.prompt_length(),
              .num_speculative_tokens = request.num_speculative_tokens,
              .is_k_auto = request.draft_length_mode == DraftLengthMode::kAuto,
              .is_lossy = IsLossy(request.sampling),
              .model = nodes.verifier_description.identity(),
              // It has its own already, which is not ours to tell.
              .cache_salt = request.cache_salt.empty() ? nodes.cache_salt : ""},
      .first_index = session.length() - session.prompt_length()};
}

// What has begun is to go on, however many new ones are to be read.
Worker::Urgency UrgencyOf(const v1::GenerateRequest& proto) {
  return IsResume(proto) ? Worker::Urgency::kUrgent
                         : Worker::Urgency::kOrdinary;
}

// Names and numbers, and none of the client's own words.
std::string ReasonForLog(const absl::Status& status) {
  const auto reason = ErrorReasonOf(status);
  if (!reason.has_value()) return "";
  std::string text = absl::StrCat(", ", *reason);
  for (const auto& [name, value] : ErrorMetadataOf(status)) {
    absl::StrAppend(&text, " ", name, "=", value);
  }
  return text;
}

struct RefusedLimiter : LogLimiter {
  RefusedLimiter() : LogLimiter(std::chrono::seconds(1)) {}
};

// One for each code, so that many lines of one hide no other.
LogLimiter& LimiterOf(absl::StatusCode code) {
  static auto& limiters = *new std::array<RefusedLimiter, 17>;
  return limiters[static_cast<size_t>(code) % limiters.size()];
}

std::vector<TokenId> EndTokensOf(const GenerationRequest& request) {
  std::vector<TokenId> tokens = request.eos_ids;
  tokens.insert(tokens.end(), request.stop_token_ids.begin(),
                request.stop_token_ids.end());
  return tokens;
}

}  // namespace

GenerationServiceImpl::GenerationServiceImpl(Parts parts, Options options)
    : parts_(parts),
      options_(options),
      running_(options.max_sessions),
      preparing_(kPreparingThreads) {}

std::vector<RpcMethod> GenerationServiceImpl::Methods() {
  const char* const service = v1::GenerationService::service_full_name();
  return {MethodOf<v1::GenerateRequest>(
              service, "Generate",
              [this](ServerCall& call, v1::GenerateRequest request) {
                Generate(call, std::move(request));
              }),
          Small(MethodOf<v1::GenerationServiceDescribeRequest>(
              service, "Describe",
              [this](ServerCall& call, const auto&) { Describe(call); }))};
}

void GenerationServiceImpl::Generate(ServerCall& call,
                                     v1::GenerateRequest request) {
  auto cancellation = std::make_shared<Cancellation>();
  CallName name = CallName::Of(call.context());
  call.context().AddInitialMetadata(kRequestIdKey, name.request_id);
  ResponseWriter& writer = ResponseWriter::For(
      call, {.queue = parts_.queue, .patience = options_.client_patience},
      cancellation);
  StartDetached(Run(std::move(request), std::move(name), writer,
                    std::move(cancellation)));
}

void GenerationServiceImpl::Refuse(const Call& call,
                                   const absl::Status& status) {
  // Any number of them may come of one client.
  if (const auto end = LimiterOf(status.code()).Admit()) {
    // Not the message: it has the client's own values in it.
    OUTRIDER_LOG(kInfo, call.name.Fields())
        << "refused: " << absl::StatusCodeToString(status.code())
        << ReasonForLog(status) << *end;
  }
  call.tally.End(std::nullopt, status.code());
  // What waits when a drain is over is to come to another coordinator.
  const absl::Status told =
      absl::IsCancelled(status) ? ForClients(status) : status;
  StartDetached(call.writer.FinishAfterWrites(ToGrpcStatus(told)));
}

void GenerationServiceImpl::Ended(const Call& call, const Session& session,
                                  const absl::StatusOr<FinishReason>& result) {
  // The code is the one that the client is told. Exception: a drain is counted
  // like a client that has left.
  const absl::Status& status = result.status();
  call.tally.End(
      result.ok() ? std::optional(*result) : std::nullopt,
      (absl::IsCancelled(status) ? status : ForClients(status)).code());
  LogFields fields = call.name.Fields();
  fields.emplace_back("session", session.id().ShortHex());
  if (result.ok() || absl::IsCancelled(result.status())) {
    OUTRIDER_LOG(kInfo, fields)
        << (result.ok()
                ? "done: "
                : absl::StrCat("cancelled (", result.status().message(), "): "))
        << call.tally.num_tokens() << " tokens, " << call.tally.num_rounds()
        << " rounds, " << call.tally.seconds() << " s";
  } else {
    OUTRIDER_LOG(kError, fields) << "failed: " << result.status();
  }
  if (IsPoison(result.status())) {
    quarantine_.Add(session.committed().tokens().first(session.prompt_length()),
                    MonotonicClock::now());
  }
}

Task<void> GenerationServiceImpl::Run(
    v1::GenerateRequest proto, CallName name, ResponseWriter& writer,
    std::shared_ptr<Cancellation> cancellation) {
  CoordinatorMetrics::Tally tally(
      parts_.metrics,
      {.arrival = writer.arrived_at(), .is_resumed = IsResume(proto)});
  const Call call = {
      .proto = proto, .name = name, .writer = writer, .tally = tally};
  const absl::Status entered = running_.Enter(
      cancellation, IsResume(proto) ? RunningGenerations::Kind::kResumed
                                    : RunningGenerations::Kind::kNew);
  if (!entered.ok()) {
    Refuse(call, entered);
    co_return;
  }
  writer.CountAmong(streams_);
  co_await preparing_.TakeTurn(UrgencyOf(proto));
  if (co_await RunOnNodes(call, cancellation, /*is_first=*/true) ==
      Outcome::kReplaced) {
    co_await AwaitVerifier(parts_.pool, *cancellation);
    co_await preparing_.TakeTurn(UrgencyOf(proto));
    co_await RunOnNodes(call, cancellation, /*is_first=*/false);
  }
  running_.Leave(cancellation);
}

Task<absl::StatusOr<SessionNodes>> GenerationServiceImpl::Assign(
    const SessionId& session, const Call& call, Cancellation& cancellation) {
  const v1::GenerateRequest& proto = call.proto;
  const auto wanted = WantedModelOf(proto);  // by a resume alone
  const VerifierNeeds needs = NeedsOf(proto, options_.default_reply_format);
  const auto assign = [&] {
    return parts_.pool.Assign(session, wanted, proto.cache_salt(), needs);
  };
  absl::StatusOr<SessionNodes> nodes = assign();
  if (!wanted.has_value() || nodes.ok()) co_return nodes;
  OUTRIDER_LOG(kWarning, call.name.Fields())
      << "holds, as no verifier that has its model is ready to resume it";
  nodes = co_await HoldForVerifier(parts_.pool, assign,
                                   options_.resume_patience, cancellation);
  co_await preparing_.TakeTurn(UrgencyOf(proto));
  co_return nodes;
}

Task<GenerationServiceImpl::Outcome> GenerationServiceImpl::RunOnNodes(
    const Call& call, const std::shared_ptr<Cancellation>& cancellation,
    bool is_first) {
  if (cancellation->cancelled()) {
    Refuse(call,
           absl::CancelledError("the client is gone, or a drain is over"));
    co_return Outcome::kEnded;
  }
  const SessionId session_id = SessionId::Random();
  const absl::StatusOr<SessionNodes> nodes =
      co_await Assign(session_id, call, *cancellation);
  absl::StatusOr<GenerationRequest> request =
      nodes.ok() ? Admit(*nodes, call) : nodes.status();
  if (!request.ok()) {
    Refuse(call, request.status());
    co_return Outcome::kEnded;
  }

  const bool may_begin_anew = is_first && !call.proto.has_model();
  if (may_begin_anew) {
    KeepTokens(request->prompt, call.proto);
  } else {
    call.proto = {};
  }
  if (is_first && IsLossy(request->sampling)) call.tally.CountLossy();
  nodes->verifier->set_use({.max_draft_tokens = request->num_speculative_tokens,
                            .is_resumed = !request->delivered.empty(),
                            .reply_format = request->reply_format,
                            .rule = request->rule});
  const auto& trace = call.name.trace;
  Session session({.id = session_id,
                   .prompt = std::move(request->prompt),
                   .delivered = std::move(request->delivered),
                   .sampling = request->sampling,
                   .rule = request->rule,
                   .logprobs = request->logprobs,
                   .seed = request->seed,
                   .max_length = request->max_length,
                   .end_tokens = EndTokensOf(*request),
                   .cache_salt = nodes->cache_salt,
                   .cancellation = cancellation,
                   .request_id = call.name.request_id,
                   .traceparent = trace.has_value() ? trace->ToHeader() : ""});
  const absl::StatusOr<FinishReason> result =
      co_await Serve(*request, *nodes, call, session);
  const bool is_replaced = may_begin_anew && absl::IsAborted(result.status()) &&
                           !call.writer.has_written();
  // The client reads its answer by itself; the caches go back early, and nobody
  // comes back for a text of its own salt that has come to its end.
  const bool is_over = result.ok() && request->cache_salt.empty();
  if (nodes->drafter != nullptr) {
    nodes->drafter->Release(
        session.AdvisoryHeader(session.drafter_cache(), is_over));
  }
  nodes->verifier->Release(
      session.AdvisoryHeader(session.verifier_cache(), is_over));
  if (is_replaced) {
    OUTRIDER_LOG(kInfo, call.name.Fields())
        << "begins anew, as its model was replaced: " << result.status();
  } else {
    Ended(call, session, result);
    StartDetached(call.writer.FinishAfterWrites(
        ToGrpcStatus(ForClients(result.status()))));
  }
  co_return is_replaced ? Outcome::kReplaced : Outcome::kEnded;
}

Task<absl::StatusOr<FinishReason>> GenerationServiceImpl::Serve(
    const GenerationRequest& request, const SessionNodes& nodes,
    const Call& call, Session& session) {
  WriterSink sink({.writer = call.writer,
                   .tally = call.tally,
                   .start = FirstUpdate(request, nodes, session),
                   .on_start = [&proto = call.proto] { proto = {}; }});
  SessionAssembly assembly({.request = request,
                            .nodes = nodes,
                            .tokenizer = parts_.tokenizer,
                            .session = session,
                            .sink = sink,
                            .max_plain_tokens = options_.max_plain_tokens});
  OUTRIDER_CO_ASSIGN_OR_RETURN(GenerationUpdate last, co_await assembly.Run());
  const FinishReason reason = last.finish->reason;
  const absl::Status told = co_await sink.Tell(std::move(last));
  told.IgnoreError();  // it may leave once it has read its end
  co_return reason;
}

absl::StatusOr<GenerationRequest> GenerationServiceImpl::Admit(
    const SessionNodes& nodes, const Call& call) const {
  // The longest of all that is done for a request, and its own until it is
  // admitted: what is thrown there ends it alone.
  absl::StatusOr<GenerationRequest> request = CatchThrown(
      "reading the request", [&] { return Parse(call.proto, nodes); });
  if (absl::IsInternal(request.status())) {
    OUTRIDER_LOG(kError, call.name.Fields())
        << "Generate failed: " << request.status();
    return absl::InternalError(
        "this coordinator failed to read the request; its log says why");
  }
  if (request.ok() && quarantine_.Has(request->prompt, MonotonicClock::now())) {
    call.tally.CountQuarantined();
    return ForClients(PoisonError());
  }
  return request;
}

absl::StatusOr<GenerationRequest> GenerationServiceImpl::Parse(
    const v1::GenerateRequest& proto, const SessionNodes& nodes) const {
  const NodeDescription& verifier = nodes.verifier_description;
  int max_draft_tokens = nodes.bounds.max_draft_tokens;
  if (nodes.has_drafter()) {
    max_draft_tokens =
        std::min(max_draft_tokens, nodes.drafter_description.max_draft_tokens);
  }
  return ParseRequest(
      proto, {.tokenizer = parts_.tokenizer,
              .vocab_size = verifier.vocab_size,
              .context_length = nodes.bounds.context_length,
              .longest_text = nodes.bounds.longest_text,
              .max_draft_tokens = max_draft_tokens,
              .most_draft_tokens = nodes.bounds.most_draft_tokens,
              .default_draft_tokens = options_.default_draft_tokens,
              .default_draft_length_mode = options_.default_draft_length_mode,
              .default_schedule = options_.default_schedule,
              .default_prompt_lookup = options_.default_prompt_lookup,
              .default_draft_options = options_.default_draft_options,
              .eos_ids = verifier.eos_ids,
              .reply_formats = verifier.reply_formats,
              .rules = verifier.rules,
              .default_reply_format = options_.default_reply_format});
}

void GenerationServiceImpl::Describe(ServerCall& call) const {
  // Who chooses by what coordinators say of themselves is to take another.
  if (const absl::Status open = running_.CheckOpen(); !open.ok()) {
    call.Finish(ToGrpcStatus(open));
    return;
  }
  v1::GenerationServiceDescribeResponse response =
      ToProto(parts_.pool.Describe());
  response.set_has_tokenizer(parts_.tokenizer != nullptr);
  call.Reply(response);
}

bool GenerationServiceImpl::Drain(std::chrono::milliseconds longest) {
  const auto begin = OpenStreams::Clock::now();
  const auto last_words =
      std::min<std::chrono::milliseconds>(kLastWords, longest / 2);
  if (!running_.Drain(longest - last_words, kLongestCancelled)) return false;
  streams_.AwaitNone(begin +
                     std::max<std::chrono::milliseconds>(longest, kLastWords));
  return true;
}

}  // namespace outrider
