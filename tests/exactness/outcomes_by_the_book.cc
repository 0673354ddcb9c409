// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/outcomes_by_the_book.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "core/base/status_macros.h"
#include "core/sampling/process.h"
#include "tests/support/in_process_stubs.h"

namespace outrider::testing {

Task<absl::StatusOr<DraftReply>> OutcomesByTheBook::Draft(
    const DraftCall& call, Cancellation& cancellation) {
  DraftCall plain = call;
  plain.max_outcomes = 0;
  plain.in_flight_tokens.clear();
  if (call.max_outcomes > 0) {
    plain.max_draft_tokens = 0;
    std::vector<TokenId>& appended = plain.header.delta.append_tokens;
    appended.insert(appended.end(), call.in_flight_tokens.begin(),
                    call.in_flight_tokens.end());
  }
  OUTRIDER_CO_ASSIGN_OR_RETURN(
      DraftReply reply, co_await parts_.drafter.Draft(plain, cancellation));
  if (call.max_outcomes == 0 || std::holds_alternative<Miss>(reply.outcome)) {
    co_return reply;
  }
  reply.outcome =
      outrider::Draft::None(static_cast<int>(call.header.delta.length()));
  reply.outcomes = Choose(call);
  for (int i = 0; i < static_cast<int>(reply.outcomes.size()); ++i) {
    OUTRIDER_CO_ASSIGN_OR_RETURN(reply.outcomes[i].draft,
                                 DraftFor(call, reply.outcomes[i], i));
  }
  co_return reply;
}

std::vector<OutcomeDraft> OutcomesByTheBook::Choose(
    const DraftCall& call) const {
  const absl::Span<const TokenId> text = parts_.text();
  TokenSeq context(text.begin(), text.end());
  const TokenSeq& drafts = call.in_flight_tokens;
  std::vector<std::pair<double, OutcomeDraft>> all;
  double stand = 1;
  for (int j = 0; j <= static_cast<int>(drafts.size()); ++j) {
    const bool are_all = j == static_cast<int>(drafts.size());
    const std::vector<float> logits = parts_.logits(context);
    const Distribution row = *Process(logits, {}, {});
    for (TokenId token = 0; token < static_cast<TokenId>(logits.size());
         ++token) {
      if (!are_all && token == drafts[j]) continue;
      const double ends = are_all ? 1 : 1 - call.acceptance;
      if (stand * ends == 0) continue;
      all.push_back({stand * ends * row(token),
                     {.num_accepted = j, .next_token = token}});
    }
    if (!are_all) context.push_back(drafts[j]);
    stand *= call.acceptance;
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  std::vector<OutcomeDraft> likeliest;
  for (auto& [weight, outcome] : all) {
    if (static_cast<int>(likeliest.size()) == call.max_outcomes) break;
    likeliest.push_back(std::move(outcome));
  }
  return likeliest;
}

absl::StatusOr<outrider::Draft> OutcomesByTheBook::DraftFor(
    const DraftCall& call, const OutcomeDraft& outcome, int index) const {
  DraftCall own = call;
  own.max_outcomes = 0;
  own.in_flight_tokens.clear();
  own.header.incarnation = {};
  own.header.prefix_hash.reset();
  own.header.step = call.header.step + index;
  const absl::Span<const TokenId> text = parts_.text();
  std::vector<TokenId>& tokens = own.header.delta.append_tokens;
  own.header.delta.keep_length = 0;
  tokens.assign(text.begin(), text.end());
  tokens.insert(tokens.end(), call.in_flight_tokens.begin(),
                call.in_flight_tokens.begin() + outcome.num_accepted);
  tokens.push_back(outcome.next_token);
  const std::unique_ptr<DraftNode> node = parts_.new_drafter();
  OUTRIDER_ASSIGN_OR_RETURN(DraftReply reply,
                            node->Run(own, ContentDigest(own)));
  return std::get<outrider::Draft>(std::move(reply.outcome));
}

}  // namespace outrider::testing
