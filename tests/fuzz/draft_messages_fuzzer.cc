// SPDX-License-Identifier: Apache-2.0
// A DraftRequest of anybody's at a drafter, and a DraftResponse of anybody's
// at a coordinator.
#include <memory>
#include <optional>
#include <utility>

#include "coordinator/control/draft_length_control.h"
#include "coordinator/peers/ahead_draft_client.h"
#include "coordinator/peers/circuit_breaker.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/optional_draft_client.h"
#include "core/testing/run_task.h"
#include "core/wire/convert.h"
#include "core/wire/read_reply.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/small_nodes.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

// Asks a drafter that has a session already.
void AtTheNode(const std::string& bytes) {
  v1::DraftRequest request;
  if (!request.ParseFromString(bytes)) return;
  auto call = FromProto(request);
  if (!call.ok()) {
    CheckRefusal(call.status());
    return;
  }
  CheckRoundTrip<v1::DraftRequest>(
      *call, [](const v1::DraftRequest& again) { return FromProto(again); });
  const auto node = MakeDraftNode(SmallModel());
  const auto reply = AskNodeWithSession(*node, *call);
  if (!reply.has_value()) return;
  v1::DraftResponse response;
  ToProto(*reply, response);
  OUTRIDER_CHECK(ReadReply(response, *call, kSmallVocabulary).ok());
}

// Answers with the same message, under the header that is waited for: that
// others are refused is node_draft_client_test's matter.
class LyingStub final : public DraftStub {
 public:
  // Other calls get an honest answer, and no draft.
  enum class To { kAll, kThoseAhead };

  LyingStub(v1::DraftResponse response, To to)
      : response_(std::move(response)), to_(to) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation&) override {
    const auto length = static_cast<int>(call.header.delta.length());
    absl::StatusOr<DraftReply> reply =
        DraftReply{.header = {.cached_length = length},
                   .outcome = outrider::Draft::None(length)};
    if (to_ == To::kAll || call.max_outcomes > 0) {
      reply = ReadReply(response_, call, kSmallVocabulary);
    }
    if (reply.ok()) Echo(call.header, reply->header);
    co_return reply;
  }

 private:
  const v1::DraftResponse response_;
  const To to_;
};

// What the rule divides by.
void CheckDraft(const Draft& draft) {
  OUTRIDER_CHECK(draft.length() <= 2);
  OUTRIDER_CHECK(draft.distributions.size() == draft.tokens.size());
  for (int i = 0; i < draft.length(); ++i) {
    OUTRIDER_CHECK(draft.distributions[i](draft.tokens[i]) > 0);
  }
}

void AtTheCoordinator(const v1::DraftResponse& response) {
  LyingStub stub(response, LyingStub::To::kAll);
  NodeDraftClient client(stub, {.context_length = kSmallContext,
                                .drafting = kGenerationDraftOptions});
  Session session(SmallSession());
  for (int round = 0; round < 3; ++round) {
    const auto proposed = RunTask(client.Propose(session, 2));
    if (!proposed.ok()) {
      CheckRefusal(proposed.status());
      return;
    }
    const Draft& draft = proposed->draft;
    CheckDraft(draft);
    session.Commit(draft, {draft.length(), 1});
  }
}

Task<bool> Stop(AheadDraftClient& client, Session& session) {
  co_await client.Stop(session);
  co_return true;
}

// The message answers what is asked while drafts are verified, which come to
// this: a stream goes on, whatever it says.
void AheadAtTheCoordinator(const v1::DraftResponse& response,
                           const Verdict& verdict) {
  LyingStub stub(response, LyingStub::To::kThoseAhead);
  NodeDraftClient node(stub, {.context_length = kSmallContext,
                              .max_outcomes = 4,
                              .drafting = kGenerationDraftOptions});
  CircuitBreaker breaker;
  DraftLengthControl control(Schedule::kPredraft);
  OptionalDraftClient in_turn(
      [&](Session&) {
        return std::optional(OptionalDraftClient::Drafter{
            .node = node, .breaker = breaker, .control = control});
      },
      DraftLengthMode::kFixed);
  AheadDraftClient client(in_turn, Schedule::kPredraft);
  Session session(SmallSession());
  // The first round fills the drafter's cache; the second asks ahead.
  for (int round = 0; round < 4; ++round) {
    const auto proposed = RunTask(client.Propose(session, 2));
    OUTRIDER_CHECK(proposed.ok()) << proposed.status();
    CheckDraft(proposed->draft);
    const Draft in_flight =
        Draft::OneHot(static_cast<uint64_t>(session.length()), {0, 1});
    client.DraftAhead(session, in_flight);
    session.Commit(in_flight, verdict);
  }
  RunTask(Stop(client, session));
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  const MessagePair messages = MessagePair::Of(AsText(data, size));
  AtTheNode(messages.first);
  outrider::v1::DraftResponse response;
  if (!response.ParseFromString(messages.second)) return 0;
  AtTheCoordinator(response);
  AheadAtTheCoordinator(response, {2, 3});
  AheadAtTheCoordinator(response, {0, 4});
  return 0;
}
