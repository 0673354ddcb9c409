// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/linked_drafter.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/peers/miss_recovery.h"
#include "core/session/token_log.h"
#include "tests/simulation/fault.h"
#include "tests/simulation/hashed_models.h"
#include "tests/support/in_process_stubs.h"

namespace outrider::testing {
namespace {

using Text = std::vector<TokenId>;

Text Joined(const Text& text, absl::Span<const TokenId> more) {
  Text joined = text;
  joined.insert(joined.end(), more.begin(), more.end());
  return joined;
}

// What each outcome's draft goes on from.
void AddOffers(const DraftCall& call, const DraftReply& reply, const Text& text,
               std::vector<Offer>& offers) {
  for (const OutcomeDraft& outcome : reply.outcomes) {
    const auto stand = absl::MakeConstSpan(call.in_flight_tokens)
                           .first(static_cast<size_t>(outcome.num_accepted));
    offers.push_back(
        {.text = Joined(Joined(text, stand), {&outcome.next_token, 1}),
         .draft = outcome.draft});
  }
}

// Takes what a drafter had in flight, when it was not waited for, for text that
// it has cached.
void KeepGivenUp(const SessionWatch& watch, RequestHeader& header) {
  CacheDelta& delta = header.delta;
  const auto end =
      static_cast<int>(std::min(watch.given_up.size(), watch.text.size() - 1));
  if (header.incarnation.is_none() || end <= delta.keep_length) return;
  TokenLog log(header.session);
  log.Append(watch.text);
  delta = {.keep_length = end,
           .append_tokens = {watch.text.begin() + end, watch.text.end()}};
  header.prefix_hash = log.PrefixHash(end);
}

bool IsWrongPrefix(const DraftReply& reply) {
  const Miss* const miss = std::get_if<Miss>(&reply.outcome);
  return miss != nullptr && miss->reason == MissReason::kPrefix;
}

}  // namespace

Task<absl::StatusOr<DraftReply>> LinkedDrafter::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  const SessionId session = call.header.session;
  SessionWatch& watch = cluster_.watches[session];
  const Text text = watch.text;
  const bool is_ahead = call.max_outcomes > 0;
  DraftCall sent = call;
  if (cluster_.mistake == Mistake::kKeepsGivenUp) {
    KeepGivenUp(watch, sent.header);
  }
  if (!watch.Says(sent.header.step, ContentDigest(sent))) {
    cluster_.Report("one step has said two things");
  }
  if (!is_ahead) watch.in_turn.reset();
  watch.given_up.clear();
  absl::StatusOr<DraftReply> reply =
      co_await ways_->Of(session).Ask(sent, kStepTimeout, cancellation);
  if (is_ahead && absl::IsCancelled(reply.status())) {
    ++cluster_.stats.num_given_up;
    watch.given_up = Joined(text, call.in_flight_tokens);
  }
  if (!reply.ok() || !CheckEcho(call.header, reply->header).ok()) {
    co_return reply;
  }
  if (IsWrongPrefix(*reply)) {
    cluster_.Report("a drafter has other tokens than its session thinks");
  }
  if (ways_->way().node.is_lying() && !Lie(*reply)) co_return reply;
  if (is_ahead) {
    AddOffers(call, *reply, text, watch.ahead);
  } else if (const auto* draft = std::get_if<outrider::Draft>(&reply->outcome);
             draft != nullptr && call.max_draft_tokens > 0) {
    watch.in_turn = {.text = text, .draft = *draft};
  }
  co_return reply;
}

// Each is of a kind that a session can notice.
bool LinkedDrafter::Lie(DraftReply& reply) {
  auto* const in_turn = std::get_if<outrider::Draft>(&reply.outcome);
  if (in_turn == nullptr) return true;
  ++cluster_.stats.num_lies;
  const uint64_t kind = HashOf(reply.header.step, 3) % 3;
  if (kind == 0) {
    reply.header.cached_length += 3;  // it will miss them, if they count
    return true;
  }
  if (kind == 1) {
    ++in_turn->start;
    return false;
  }
  std::vector<outrider::Draft*> drafts = {in_turn};
  for (OutcomeDraft& outcome : reply.outcomes) drafts.push_back(&outcome.draft);
  bool is_true = true;
  for (outrider::Draft* const draft : drafts) {
    if (draft->length() == 0) continue;
    draft->tokens.back() = kHashedVocabulary;  // which no row has
    is_true = false;
  }
  return is_true;
}

}  // namespace outrider::testing
