// SPDX-License-Identifier: Apache-2.0
// A VerifyRequest of anybody's at a verifier, and a VerifyResponse of anybody's
// at a coordinator.
#include <memory>
#include <optional>
#include <utility>

#include "coordinator/control/run_length.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/round/round_result.h"
#include "core/sampling/make_rule.h"
#include "core/sampling/sampling_params.h"
#include "core/session/check_tokens.h"
#include "core/testing/run_task.h"
#include "core/wire/convert.h"
#include "core/wire/field_convert.h"
#include "core/wire/read_reply.h"
#include "core/wire/reply_codec.h"
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
  const auto read = ReadReply(std::move(response), *call, kSmallVocabulary);
  OUTRIDER_CHECK(read.ok()) << read.status();
}

// Answers every call with the same message, under the header that is waited
// for.
class LyingStub final : public VerifyStub {
 public:
  explicit LyingStub(v1::VerifyResponse response)
      : response_(std::move(response)) {}

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation&) override {
    auto reply = ReadReply(response_, call, kSmallVocabulary);
    if (reply.ok()) Echo(call.header, reply->header);
    co_return reply;
  }

 private:
  const v1::VerifyResponse response_;
};

Draft TwoDrafts(const Session& session) {
  return {.start = static_cast<uint64_t>(session.length()),
          .tokens = {1, 2},
          .distributions = {Distribution::FromSorted({1, 3}, {0.75, 0.25}),
                            Distribution::OneHot(2)}};
}

// What a coordinator asks for, as the fuzzed request has it.
struct Asked {
  ReplyFormat format = {};
  RuleKind rule = {};
  SamplingParams sampling = {};
};

// Rounds of a session that the verifier has, with two drafts each, or of plain
// runs of up to four tokens.
void AtTheCoordinator(const v1::VerifyResponse& response, const Asked& asked,
                      bool has_drafts) {
  LyingStub stub(response);
  FixedRunLength run(4);
  NodeVerifyClient client(stub, asked.format, &run);
  Session::Options options = SmallSession();
  options.logprobs = LogprobsOptions{.num_top = 2};
  options.rule = asked.rule;
  options.sampling = asked.sampling;
  Session session(std::move(options));
  session.verifier_cache().Acknowledged(session.length(),
                                        Incarnation::FromBytes(kLiveBytes));
  const auto rule = MakeRule(asked.rule, asked.sampling.lossy_lenience);
  for (int round = 0; round < 3; ++round) {
    Draft draft =
        has_drafts ? TwoDrafts(session) : Draft::None(session.length());
    const int most_more = has_drafts ? 0 : 3;
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
    OUTRIDER_CHECK(verdict.num_accepted >= 0 &&
                   verdict.num_accepted <= draft.length());
    OUTRIDER_CHECK(static_cast<int>(score.more_tokens.size()) <= most_more);
    TokenSeq given = score.more_tokens;
    given.push_back(verdict.next_token);
    OUTRIDER_CHECK(CheckTokens(given, kSmallVocabulary).ok());
    const auto logprobs = LogprobsOf(score, draft, verdict, session);
    if (!logprobs.ok()) {
      CheckRefusal(logprobs.status());
      return;
    }
    session.Commit(draft, verdict, score.more_tokens);
  }
}

// Nothing where a coordinator would not ask so.
std::optional<Asked> AskedBy(const v1::VerifyRequest& request) {
  const auto format = FromProto(request.reply_format());
  const auto rule = FromProto(request.acceptance_rule());
  const auto sampling = FromProto(request.sampling());
  if (!format.ok() || !rule.ok() || !sampling.ok()) return std::nullopt;
  const bool may_be_lossy = *rule == RuleKind::kRejection;
  if (!CodecOf(*format).CheckRule(*rule).ok() ||
      !Validate(*sampling, kSmallVocabulary).ok() ||
      (IsLossy(*sampling) && !may_be_lossy)) {
    return std::nullopt;
  }
  return Asked{*format, *rule, *sampling};
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
  const auto asked = AskedBy(request);
  if (!asked.has_value()) return 0;
  AtTheCoordinator(response, *asked, /*has_drafts=*/true);
  AtTheCoordinator(response, *asked, /*has_drafts=*/false);
  return 0;
}
