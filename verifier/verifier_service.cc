// SPDX-License-Identifier: Apache-2.0
#include "verifier/verifier_service.h"

#include <chrono>

#include "core/base/cancellation.h"
#include "core/node/node_call.h"
#include "core/rpc/sleep.h"
#include "core/session/suspect_place.h"
#include "core/wire/field_convert.h"
#include "core/wire/message_limits.h"
#include "outrider/v1/verifier.grpc.pb.h"

namespace outrider {
namespace {

// Less than coordinators wait for the answer: to them, a node that says nothing
// hangs.
constexpr std::chrono::milliseconds kLongestWait(250);

}  // namespace

std::vector<RpcMethod> VerifierServiceImpl::Methods() {
  const char* const service = v1::VerifierService::service_full_name();
  return {MethodOf<v1::VerifyRequest>(
              service, "Verify",
              [this](ServerCall& call, const v1::VerifyRequest& request) {
                HandleCall<v1::VerifyResponse>(node_, *engine_, call, request);
              }),
          Small(MethodOf<v1::IsolateRequest>(
              service, "Isolate",
              [this](ServerCall& call, const v1::IsolateRequest& request) {
                Isolate(call, request);
              })),
          Small(MethodOf<v1::VerifierServiceDescribeRequest>(
              service, "Describe", [this](ServerCall& call, const auto&) {
                HandleDescribe<v1::VerifierServiceDescribeResponse>(node_,
                                                                    call);
              }))};
}

void VerifierServiceImpl::Isolate(ServerCall& call,
                                  const v1::IsolateRequest& request) {
  const auto session = ToId(request.session_id(), "session_id");
  if (!session.ok()) return call.Finish(ToGrpcStatus(session.status()));
  StartDetached(AwaitPlace(call, *session));
}

Task<void> VerifierServiceImpl::AwaitPlace(ServerCall& call,
                                           SessionId session) {
  SuspectPlace& place = node_.suspects();
  const auto latest = SuspectPlace::Clock::now() + kLongestWait;
  v1::IsolateResponse response;
  while (!call.is_cancelled()) {
    Cancellation freed;
    const SuspectPlace::Waiter waiter(place, freed);
    const auto now = SuspectPlace::Clock::now();
    response.set_granted(place.Enter(session, now));
    if (response.granted() || now >= latest) break;
    co_await Sleep(call.queue(),
                   std::chrono::ceil<std::chrono::milliseconds>(latest - now),
                   freed);
  }
  call.Reply(response);
}

std::unique_ptr<RpcService> MakeVerifierService(
    Node& node, const NodeDescription& description) {
  return std::make_unique<VerifierServiceImpl>(
      node, std::make_unique<VerifyEngine>(VerifyEngine::Options{
                .vocab_size = description.vocab_size,
                .context_length = description.context_length,
                .max_draft_tokens = description.max_draft_tokens,
                .model_answers = node.model().answers_questions()}));
}

int MaxVerifyRequestBytes(const NodeDescription& description) {
  return LimitsOf(description).verify_request;
}

}  // namespace outrider
