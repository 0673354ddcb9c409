// SPDX-License-Identifier: Apache-2.0
#include "client/generation_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/rpc/connect_error.h"
#include "core/rpc/deadline.h"
#include "core/rpc/status_convert.h"
#include "core/rpc/tls.h"
#include "core/wire/field_convert.h"
#include "core/wire/generation_convert.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider::client {
namespace {

void SetProcessing(const GenerationRequest& request,
                   v1::GenerateRequest& proto) {
  if (request.min_p) proto.set_min_p(*request.min_p);
  if (request.repetition_penalty) {
    proto.set_repetition_penalty(*request.repetition_penalty);
  }
  if (request.presence_penalty) {
    proto.set_presence_penalty(*request.presence_penalty);
  }
  if (request.frequency_penalty) {
    proto.set_frequency_penalty(*request.frequency_penalty);
  }
  for (const LogitBias& entry : request.logit_bias) {
    v1::LogitBias& added = *proto.add_logit_bias();
    added.set_id(entry.id);
    added.set_bias(entry.bias);
  }
  if (request.logprobs) proto.set_logprobs(*request.logprobs);
  if (request.logprobs_mode) {
    proto.set_logprobs_mode(*request.logprobs_mode == LogprobsMode::kRaw
                                ? v1::LOGPROBS_MODE_RAW
                                : v1::LOGPROBS_MODE_PROCESSED);
  }
}

v1::GenerateRequest ToProto(const GenerationRequest& request) {
  v1::GenerateRequest proto;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    proto.set_text(*text);
  } else {
    const auto& tokens = std::get<TokenSeq>(request.prompt);
    proto.mutable_tokens()->mutable_ids()->Add(tokens.begin(), tokens.end());
  }
  if (request.temperature) proto.set_temperature(*request.temperature);
  if (request.top_k) proto.set_top_k(*request.top_k);
  if (request.top_p) proto.set_top_p(*request.top_p);
  SetProcessing(request, proto);
  if (request.seed) proto.set_seed(*request.seed);
  if (request.max_tokens) proto.set_max_tokens(*request.max_tokens);
  for (const std::string& stop : request.stop_strings) {
    proto.add_stop_strings(stop);
  }
  proto.mutable_stop_token_ids()->Add(request.stop_token_ids.begin(),
                                      request.stop_token_ids.end());
  if (request.num_speculative_tokens) {
    proto.set_num_speculative_tokens(*request.num_speculative_tokens);
  }
  proto.set_auto_num_speculative_tokens(request.is_k_auto);
  proto.set_ignore_eos(request.ignore_eos);
  *proto.mutable_draft_options() = outrider::ToProto(request.draft_options);
  if (request.schedule) {
    proto.set_schedule(outrider::ToProto(*request.schedule));
  }
  if (request.prompt_lookup) proto.set_prompt_lookup(*request.prompt_lookup);
  if (request.reply_format) {
    proto.set_reply_format(outrider::ToProto(*request.reply_format));
  }
  if (request.acceptance_rule) {
    proto.set_acceptance_rule(outrider::ToProto(*request.acceptance_rule));
  }
  if (request.lossy_lenience) {
    proto.set_lossy_lenience(*request.lossy_lenience);
  }
  proto.set_cache_salt(request.cache_salt);
  if (request.delivered) {
    proto.mutable_delivered()->mutable_ids()->Add(request.delivered->begin(),
                                                  request.delivered->end());
  }
  if (request.model) {
    *proto.mutable_model() = outrider::ToProto(*request.model);
  }
  return proto;
}

// gRPC's words for a connection that broke, as opposed to the coordinator's.
bool SaysBroken(absl::string_view message) {
  for (const absl::string_view words :
       {"Socket closed", "Connection reset", "Broken pipe", "recvmsg",
        "sendmsg", "keepalive", "GOAWAY", "Cancelling all calls"}) {
    if (absl::StrContains(message, words)) return true;
  }
  return false;
}

// gRPC's words for an address of no use name neither it nor a remedy.
absl::Status Explain(const absl::Status& status, const std::string& coordinator,
                     const TlsFiles& tls) {
  const absl::string_view message = status.message();
  if (absl::IsUnavailable(status)) {
    if (absl::StartsWith(message, "DNS resolution failed")) {
      return absl::UnavailableError(
          absl::StrCat("the host of ", coordinator,
                       " has no address: is it spelled right?"));
    }
    if (const auto reason = ExplainConnectError(message, tls)) {
      return absl::UnavailableError(absl::StrCat(
          "no connection to the coordinator at ", coordinator, ": ", *reason));
    }
    if (absl::StartsWith(message, "failed to connect")) {
      return absl::UnavailableError(
          absl::StrCat("no coordinator answers at ", coordinator,
                       ": is outrider-coordinator running there?"));
    }
    if (SaysBroken(message)) {
      return absl::UnavailableError(
          absl::StrCat("the connection to the coordinator at ", coordinator,
                       " broke (", message, ")"));
    }
  }
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError(
        absl::StrCat("what listens at ", coordinator,
                     " is no coordinator: pass the HOST:PORT that "
                     "outrider-coordinator printed (",
                     message, ")"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the coordinator at ", coordinator,
                     " did not finish within the timeout"));
  }
  return status;
}

}  // namespace

struct GenerationClient::Stub {
  Stub(const std::string& coordinator, const TlsFiles& tls,
       const Keepalive& keepalive)
      : grpc(v1::GenerationService::NewStub(MakeChannel(
            coordinator, {.credentials = MakeChannelCredentials(tls),
                          .keepalive = keepalive}))) {}

  const std::unique_ptr<v1::GenerationService::Stub> grpc;
};

struct GenerationStream::Call {
  // The call begins; from the second time on this does nothing.
  void Start() {
    if (reader == nullptr) reader = stub->grpc->Generate(&context, request);
  }
  // The status; a reader has to be read to its end before.
  absl::Status End() {
    v1::GenerateResponse ignored;
    while (reader->Read(&ignored)) {
    }
    return Explain(FromCoordinatorStatus(reader->Finish()), coordinator, tls);
  }

  std::string coordinator;
  TlsFiles tls;
  std::shared_ptr<GenerationClient::Stub> stub;
  v1::GenerateRequest request;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader;
};

GenerationStream::GenerationStream(GenerationRequest request,
                                   std::unique_ptr<Call> call)
    : request_(std::move(request)),
      delivered_(request_.delivered.value_or(TokenSeq{})),
      call_(std::move(call)) {}

GenerationStream::~GenerationStream() {
  if (!finished_) Abandon();
}

absl::StatusOr<std::optional<GenerationUpdate>> GenerationStream::Next() {
  if (finished_) return std::nullopt;
  Start();
  v1::GenerateResponse proto;
  if (!call_->reader->Read(&proto)) {
    finished_ = true;
    const absl::Status end = call_->End();
    if (absl::IsCancelled(end) && !is_cancelled_) {
      // So gRPC's servers end what they have not begun when they shut down.
      return absl::UnavailableError(
          absl::StrCat("the coordinator at ", call_->coordinator,
                       " broke the stream off, as if it shut down"));
    }
    OUTRIDER_RETURN_IF_ERROR(end);
    return absl::InternalError("the stream ended without its last message");
  }
  GenerationUpdate update = outrider::FromProto(proto);
  if (absl::Status status = Take(update); !status.ok()) {
    Abandon();
    return status;
  }
  if (update.finish.has_value()) {
    // All was said: a connection lost from here on takes nothing away.
    finished_ = true;
    call_->End().IgnoreError();
  }
  return update;
}

absl::Status GenerationStream::Take(GenerationUpdate& update) {
  if (!started_) {
    if (!update.start.has_value()) {
      return absl::InternalError("the stream began without its first message");
    }
    started_ = true;
    request_.seed = update.start->seed;
    request_.model = update.start->model;
    if (!update.start->cache_salt.empty()) {
      request_.cache_salt = update.start->cache_salt;
    }
    request_.is_k_auto = update.start->is_k_auto;
    request_.num_speculative_tokens.reset();
    if (!request_.is_k_auto) {
      request_.num_speculative_tokens = update.start->num_speculative_tokens;
    }
  }
  if (update.tokens.empty()) return absl::OkStatus();
  const int next_index = static_cast<int>(delivered_.size());
  if (update.first_index > next_index) {
    return absl::InternalError(absl::StrCat("tokens are missing: expected ",
                                            next_index, " next, got ",
                                            update.first_index));
  }
  const int num_known = next_index - update.first_index;
  const int num_dropped =
      std::min(num_known, static_cast<int>(update.tokens.size()));
  update.tokens.erase(update.tokens.begin(),
                      update.tokens.begin() + num_dropped);
  update.first_index += num_dropped;
  for (const GeneratedToken& token : update.tokens) {
    delivered_.push_back(token.id);
  }
  return absl::OkStatus();
}

void GenerationStream::Start() { call_->Start(); }

void GenerationStream::Abandon() {
  finished_ = true;
  if (call_->reader == nullptr) return;
  call_->context.TryCancel();
  call_->End().IgnoreError();
}

void GenerationStream::Cancel() {
  is_cancelled_ = true;
  call_->context.TryCancel();
}

GenerationRequest GenerationStream::ResumeRequest() const {
  GenerationRequest request = request_;
  request.delivered = delivered_;
  return request;
}

GenerationClient::GenerationClient(const std::string& coordinator,
                                   const TlsFiles& tls,
                                   const Keepalive& keepalive)
    : coordinator_(coordinator),
      tls_(tls),
      stub_(std::make_shared<Stub>(coordinator, tls, keepalive)) {}

GenerationClient::~GenerationClient() = default;

std::unique_ptr<GenerationStream> GenerationClient::Generate(
    GenerationRequest request, std::chrono::milliseconds timeout) {
  auto stream = Prepare(std::move(request), timeout);
  stream->Start();
  return stream;
}

std::unique_ptr<GenerationStream> GenerationClient::Prepare(
    GenerationRequest request, std::chrono::milliseconds timeout) {
  auto call = std::make_unique<GenerationStream::Call>();
  call->coordinator = coordinator_;
  call->tls = tls_;
  call->stub = stub_;
  call->request = ToProto(request);
  call->context.set_deadline(DeadlineAfter(timeout));
  return std::make_unique<GenerationStream>(std::move(request),
                                            std::move(call));
}

absl::StatusOr<Deployment> GenerationClient::Describe(
    std::chrono::milliseconds timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  v1::GenerationServiceDescribeResponse proto;
  const grpc::Status status = stub_->grpc->Describe(&context, {}, &proto);
  OUTRIDER_RETURN_IF_ERROR(Explain(FromGrpcStatus(status), coordinator_, tls_));
  Deployment deployment = {
      .refused_verifiers = {proto.refused_verifiers().begin(),
                            proto.refused_verifiers().end()},
      .refused_drafters = {proto.refused_drafters().begin(),
                           proto.refused_drafters().end()},
      .has_tokenizer = proto.has_tokenizer()};
  for (const v1::NodeDescription& node : proto.verifiers()) {
    deployment.verifiers.push_back(outrider::FromProto(node));
  }
  for (const v1::NodeDescription& node : proto.drafters()) {
    deployment.drafters.push_back(outrider::FromProto(node));
  }
  return deployment;
}

}  // namespace outrider::client
