// SPDX-License-Identifier: Apache-2.0
// A VerifyRequest of anybody's at a verifier, and a VerifyResponse of anybody's
// at a coordinator.
#include <memory>
#include <utility>

#include "coordinator/peers/node_verify_client.h"
#include "coordinator/round/round_result.h"
#include "core/sampling/make_rule.h"
#include "core/testing/run_task.h"
#include "core/wire/convert.h"
#include "core/wire/field_convert.h"
#include "core/wire/reply_parts.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/small_nodes.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {
namespace {

// Asks a verifier that has a session already.
void AtTheNode(const v1::VerifyRequest& request) {
  auto call = FromProto(request);
  if (!call.ok()) {
    CheckRefusal(call.status());
    return;
  }
  CheckRoundTrip<v1::VerifyRequest>(
      *call, [](const v1::VerifyRequest& again) { return FromProto(again); });
  const auto node = MakeVerifyNode(SmallModel());
  const auto reply = AskNodeWithSession(*node, *call);
  if (!reply.has_value()) return;
  v1::VerifyResponse response;
  ToProto(*reply, response);
  const auto read = FromProto(std::move(response), *call);
  OUTRIDER_CHECK(read.ok()) << read.status();
  OUTRIDER_CHECK(CheckVocabulary(*read, kSmallVocabulary).ok());
}

// Answers every call with the same message, under the header that is waited
// for.
class LyingStub final : public VerifyStub {
 public:
  explicit LyingStub(v1::VerifyResponse response)
      : response_(std::move(response)) {}

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation&) override {
    auto reply = FromProto(response_, call);
    if (!reply.ok()) co_return reply;
    const absl::Status status = CheckVocabulary(*reply, kSmallVocabulary);
    if (!status.ok()) co_return status;
    Echo(call.header, reply->header);
    co_return reply;
  }

 private:
  const v1::VerifyResponse response_;
};

void AtTheCoordinator(v1::VerifyResponse response, ReplyFormat format,
                      RuleKind rule_kind) {
  LyingStub stub(std::move(response));
  NodeVerifyClient client(stub, format);
  Session::Options options = SmallSession();
  options.logprobs = LogprobsOptions{.num_top = 2};
  options.rule = rule_kind;
  Session session(std::move(options));
  const auto rule = MakeRule(rule_kind, /*lossy_lenience=*/1);
  for (int round = 0; round < 3; ++round) {
    Draft draft = {
        .start = static_cast<uint64_t>(session.length()),
        .tokens = {1, 2},
        .distributions = {Distribution::FromSorted({1, 3}, {0.75, 0.25}),
                          Distribution::OneHot(2)}};
    const auto scored = RunTask(client.Score(session, draft));
    if (!scored.ok()) {
      CheckRefusal(scored.status());
      return;
    }
    const DraftScore& score = scored->score;
    const Verdict verdict =
        score.verdict.has_value()
            ? *score.verdict
            : rule->Judge(draft, score.rows, session.coins());
    OUTRIDER_CHECK(verdict.num_accepted >= 0 && verdict.num_accepted <= 2);
    OUTRIDER_CHECK(verdict.next_token >= 0 &&
                   verdict.next_token < kSmallVocabulary);
    const auto logprobs = LogprobsOf(score, draft, verdict, session);
    if (!logprobs.ok()) {
      CheckRefusal(logprobs.status());
      return;
    }
    session.Commit(draft, verdict);
  }
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;           // NOLINT: a program of one function
  using namespace outrider::testing;  // NOLINT
  const MessagePair messages = MessagePair::Of(AsText(data, size));
  v1::VerifyRequest request;
  if (!request.ParseFromString(messages.first)) return 0;
  AtTheNode(request);
  v1::VerifyResponse response;
  if (!response.ParseFromString(messages.second)) return 0;
  const auto format = FromProto(request.reply_format());
  const auto rule = FromProto(request.acceptance_rule());
  if (!format.ok() || !rule.ok() || !CodecOf(*format).CheckRule(*rule).ok()) {
    return 0;
  }
  AtTheCoordinator(std::move(response), *format, *rule);
  return 0;
}
