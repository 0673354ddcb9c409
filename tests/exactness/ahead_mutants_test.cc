// SPDX-License-Identifier: Apache-2.0
// What a drafter drafts ahead is, for each outcome, what a call of its own
// would get: mistakes in that, each of which must be caught. Built with
// OUTRIDER_MUTANTS.
#include <variant>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/exactness/scoped_mutant.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing::ahead_mutants {
namespace {

constexpr int kWords = 5;
constexpr int kPromptLength = 20;

// Every token matters.
std::vector<float> Logits(absl::Span<const TokenId> text) {
  uint32_t hash = 1;
  for (const TokenId token : text) hash = (hash + token + 1) * 2654435761u;
  std::vector<float> logits;
  for (int word = 0; word < kWords; ++word) {
    logits.push_back(static_cast<float>((hash >> (5 * word)) % 16) / 8);
  }
  return logits;
}

DraftReply Run(DraftCall call, TokenSeq text) {
  const auto node = MakeDraftNode({.table = Logits, .vocab_size = kWords});
  call.header.delta.append_tokens = std::move(text);
  const auto reply = node->Run(call, ContentDigest(call));
  EXPECT_THAT(reply, IsOk());
  return *reply;
}

// How many of the drafts are not what a call of its own gets.
int NumWrongDrafts(Mutant mutant) {
  const TokenSeq text(kPromptLength, 1);
  const DraftCall plain = {.header = {.session = {.bytes = {1}}, .step = 5},
                           .max_draft_tokens = 3,
                           .options = {.support_size = kWords},
                           .sampling = {.temperature = 1},
                           .seed = 7};
  DraftCall ahead = plain;
  ahead.in_flight_tokens = {1, 2, 3};
  ahead.max_outcomes = 8;
  ahead.acceptance = 0.7;
  DraftReply reply;
  {
    const ScopedMutant scoped(mutant);
    reply = Run(ahead, text);
  }
  EXPECT_EQ(reply.outcomes.size(), 8u);
  int num_wrong = 0;
  for (size_t i = 0; i < reply.outcomes.size(); ++i) {
    const OutcomeDraft& outcome = reply.outcomes[i];
    TokenSeq whole = text;
    const auto first = ahead.in_flight_tokens.begin();
    whole.insert(whole.end(), first, first + outcome.num_accepted);
    whole.push_back(outcome.next_token);
    DraftCall alone = plain;
    alone.header.step = plain.header.step + i;
    const DraftReply expected = Run(alone, whole);
    if (std::get<Draft>(expected.outcome).tokens != outcome.draft.tokens) {
      ++num_wrong;
    }
  }
  return num_wrong;
}

TEST(AheadMutantsTest, EachDraftIsThatOfACallOfItsOwn) {
  EXPECT_EQ(NumWrongDrafts(Mutant::kNone), 0);
}

TEST(AheadMutantsTest, CoinsOfTheWrongStepAreCaught) {
  EXPECT_GT(NumWrongDrafts(Mutant::kA1), 0);
}

// Branches write over each other's beginnings, and over what the session keeps:
// the accounts of the blocks find it before a draft is wrong.
TEST(AheadMutantsTest, ABranchThatWritesIntoTheSessionsLastBlockIsCaught) {
  EXPECT_DEATH(NumWrongDrafts(Mutant::kE7), "check failed");
}

}  // namespace
}  // namespace outrider::testing::ahead_mutants
