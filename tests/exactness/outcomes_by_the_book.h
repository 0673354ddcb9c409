// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_OUTCOMES_BY_THE_BOOK_H_
#define OUTRIDER_TESTS_EXACTNESS_OUTCOMES_BY_THE_BOOK_H_

#include <functional>
#include <memory>
#include <vector>

#include "coordinator/peers/node_stub.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// Answers what asks for drafts after outcomes as the protocol defines that, by
// calls that do not: what was in flight is taken in as text, and each outcome
// is drafted for by a drafter of its own, whose session has that outcome's text
// and step. All other calls go through.
class OutcomesByTheBook final : public DraftStub {
 public:
  struct Parts {
    DraftStub& drafter;
    // One that knows no session yet.
    std::function<std::unique_ptr<DraftNode>()> new_drafter = {};
    // The drafter's logits after a text.
    std::function<std::vector<float>(absl::Span<const TokenId>)> logits = {};
    // The session's text.
    std::function<absl::Span<const TokenId>()> text = {};
  };

  explicit OutcomesByTheBook(Parts parts) : parts_(std::move(parts)) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;

 private:
  // The likeliest first: how many stand, and the next token.
  std::vector<OutcomeDraft> Choose(const DraftCall& call) const;
  absl::StatusOr<outrider::Draft> DraftFor(const DraftCall& call,
                                           const OutcomeDraft& outcome,
                                           int index) const;

  const Parts parts_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_OUTCOMES_BY_THE_BOOK_H_
