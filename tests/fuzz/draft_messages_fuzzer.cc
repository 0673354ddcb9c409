// SPDX-License-Identifier: Apache-2.0
// A DraftRequest of anybody's at a drafter, and a DraftResponse of anybody's
// at a coordinator.
#include <memory>
#include <utility>

#include "coordinator/peers/node_draft_client.h"
#include "core/testing/run_task.h"
#include "core/wire/convert.h"
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
  OUTRIDER_CHECK(FromProto(response, *call, kSmallVocabulary).ok());
}

// Answers every call with the same message, under the header that is waited
// for: that others are refused is node_draft_client_test's matter.
class LyingStub final : public DraftStub {
 public:
  explicit LyingStub(v1::DraftResponse response)
      : response_(std::move(response)) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation&) override {
    auto reply = FromProto(response_, call, kSmallVocabulary);
    if (reply.ok()) Echo(call.header, reply->header);
    co_return reply;
  }

 private:
  const v1::DraftResponse response_;
};

void AtTheCoordinator(const std::string& bytes) {
  v1::DraftResponse response;
  if (!response.ParseFromString(bytes)) return;
  LyingStub stub(std::move(response));
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
    OUTRIDER_CHECK(draft.length() <= 2);
    session.Commit(draft, {draft.length(), 1});
  }
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  const MessagePair messages = MessagePair::Of(AsText(data, size));
  AtTheNode(messages.first);
  AtTheCoordinator(messages.second);
  return 0;
}
