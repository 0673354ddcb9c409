// SPDX-License-Identifier: Apache-2.0
// Which entries each cache holds when, for every n, K and a, over two rounds.
// The caches hold tokens, so a length can not be right by accident.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/round/session.h"
#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/in_process_stubs.h"

namespace outrider::testing::kv_arithmetic {
namespace {

constexpr int kVocabSize = 97;

// A table that a test never looks at: which tokens are drawn is the coins'.
std::vector<float> Flat(absl::Span<const TokenId>) {
  return std::vector<float>(kVocabSize, 0.0f);
}

TokenSeq Concat(absl::Span<const TokenId> a, absl::Span<const TokenId> b) {
  TokenSeq both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

class KvArithmetic {
 public:
  explicit KvArithmetic(int num_prompt_tokens) {
    const TableLm::Options model = {.table = Flat, .vocab_size = kVocabSize};
    drafter_node_ = MakeDraftNode(model);
    verifier_node_ = MakeVerifyNode(model);
    TokenSeq prompt;
    for (int i = 0; i < num_prompt_tokens; ++i) prompt.push_back(90 + i);
    session_ = std::make_unique<Session>(
        Session::Options{.prompt = prompt, .max_length = 1 << 16});
  }

  // One round of K drafts of which `num_accepted` stand.
  void Round(int k, int num_accepted, bool is_first) {
    InProcessDraftStub draft_stub(*drafter_node_);
    InProcessVerifyStub verify_stub(*verifier_node_);
    NodeDraftClient drafter(draft_stub, {.context_length = 1 << 20,
                                         .drafting = {.support_size = 8}});
    NodeVerifyClient verifier(verify_stub);
    Session& session = *session_;
    const TokenSeq committed = {session.committed().tokens().begin(),
                                session.committed().tokens().end()};
    const int n = session.length();

    Draft draft = {.start = static_cast<uint64_t>(n)};
    if (k > 0) {
      // The mirrors know of the drafter at most what is committed.
      EXPECT_LE(session.drafter_cache().length(), n);
      auto proposal = RunTask(drafter.Propose(session, k));
      ASSERT_THAT(proposal, IsOk());
      draft = proposal->draft;
      EXPECT_EQ(proposal->link.num_misses(), 0);
      ASSERT_EQ(draft.length(), k);
      // The pending token and x_1..x_{K-1} were forwarded, x_K was not.
      EXPECT_EQ(
          drafter_node_->Cached(session.id()),
          Concat(committed, absl::MakeConstSpan(draft.tokens).first(k - 1)));
      EXPECT_EQ(session.drafter_cache().length(), n - 1 + k);
    }
    if (!is_first) {
      EXPECT_EQ(session.verifier_cache().length(), n - 1);
    }
    const auto scored = RunTask(verifier.Score(session, draft));
    ASSERT_THAT(scored, IsOk());
    EXPECT_EQ(scored->link.num_misses(), 0);
    EXPECT_EQ(verifier_node_->Cached(session.id()),
              Concat(committed, draft.tokens));
    EXPECT_EQ(session.verifier_cache().length(), n + k);

    const int drafter_had = session.drafter_cache().length();
    session.Commit(draft, {num_accepted, /*next_token=*/80});
    EXPECT_EQ(session.length(), n + num_accepted + 1);
    EXPECT_EQ(session.verifier_cache().length(), n + num_accepted);
    EXPECT_EQ(session.drafter_cache().length(),
              std::min(drafter_had, n + num_accepted));
    ExpectNextDelta(session.verifier_cache(), n + num_accepted);
    // One short after full acceptance: x_K has no entry.
    if (k > 0) {
      ExpectNextDelta(session.drafter_cache(),
                      n + num_accepted - (num_accepted == k ? 1 : 0));
    }
  }

 private:
  // keep_length = min(have, n - 1), append_tokens = committed[keep_length, n).
  void ExpectNextDelta(const CacheMirror& mirror, int keep_length) {
    const TokenLog& committed = session_->committed();
    const CacheDelta delta = mirror.CatchUp(committed);
    EXPECT_EQ(delta.keep_length, keep_length);
    EXPECT_THAT(delta.append_tokens,
                ::testing::ElementsAreArray(committed.From(keep_length)));
    EXPECT_GE(delta.append_tokens.size(), 1u);
  }

  std::unique_ptr<DraftNode> drafter_node_;
  std::unique_ptr<VerifyNode> verifier_node_;
  std::unique_ptr<Session> session_;
};

TEST(KvArithmeticTest, HoldsOverTwoRoundsForEveryLengthAndAcceptance) {
  constexpr int kMaxDrafts = 5;
  for (int n = 1; n <= 6; ++n) {
    for (int k1 = 0; k1 <= kMaxDrafts; ++k1) {
      for (int a1 = 0; a1 <= k1; ++a1) {
        for (int k2 = 0; k2 <= kMaxDrafts; ++k2) {
          for (int a2 = 0; a2 <= k2; ++a2) {
            SCOPED_TRACE(absl::StrCat("n ", n, ", K ", k1, " then ", k2,
                                      ", accepted ", a1, " then ", a2));
            KvArithmetic kv(n);
            kv.Round(k1, a1, /*is_first=*/true);
            kv.Round(k2, a2, /*is_first=*/false);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

// The example of the specification: n = 10, K = 4.
TEST(KvArithmeticTest, AcceptingTwoOfFourKeepsTwelveOnBothNodes) {
  CacheMirror drafter;
  CacheMirror verifier;
  TokenLog committed{SessionId()};
  committed.Append({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 12});
  verifier.Acknowledged(14, {});
  verifier.SharesOnly(12);
  drafter.Acknowledged(13, {});
  drafter.SharesOnly(12);
  for (const CacheMirror& mirror : {drafter, verifier}) {
    EXPECT_EQ(mirror.CatchUp(committed).keep_length, 12);
    EXPECT_EQ(mirror.CatchUp(committed).append_tokens, TokenSeq{12});
  }
}

}  // namespace
}  // namespace outrider::testing::kv_arithmetic
