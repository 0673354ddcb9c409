// SPDX-License-Identifier: Apache-2.0
// A session that goes on at another verifier keeps its drafts, its coins and
// its steps, so that a move changes no token: neither the law, whenever it
// happens and whatever it depends on, nor the text of one seed. The mistakes
// that a move could make are caught.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sampling/rejection.h"
#include "core/testing/run_task.h"
#include "gtest/gtest.h"
#include "tests/exactness/coins_of_epoch.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"
#include "tests/exactness/sabotage.h"

namespace outrider::testing::moves {
namespace {

constexpr int kLength = 4;

using IsLost =
    std::function<bool(ToyCluster&, const VerifyCall&, const VerifyReply&)>;

// Loses the first reply of a round alone: what comes after it opens the session
// at the other verifier. Nothing is remembered, as a generation is run many
// times.
IsLost OnceARound(IsLost is_lost) {
  return [is_lost](ToyCluster& cluster, const VerifyCall& call,
                   const VerifyReply& reply) {
    const bool is_first = !call.header.incarnation.is_none() ||
                          cluster.other_verifier() == nullptr;
    return is_first && !std::holds_alternative<Miss>(reply.outcome) &&
           is_lost(cluster, call, reply);
  };
}
IsLost InEveryRound() {
  return OnceARound(
      [](ToyCluster&, const VerifyCall&, const VerifyReply&) { return true; });
}
IsLost InRound(int round) {
  return OnceARound(
      [round](ToyCluster& cluster, const VerifyCall&, const VerifyReply&) {
        return cluster.num_rounds() == round;
      });
}
// A verifier that one text takes down and another does not.
IsLost WhereTheFirstDraftIsZero() {
  return OnceARound(
      [](ToyCluster&, const VerifyCall& call, const VerifyReply&) {
        return !call.draft_tokens.empty() && call.draft_tokens[0] == 0;
      });
}

ClusterConfig With(Sabotage sabotage, RuleKind rule = RuleKind::kRejection,
                   ReplyFormat format = ReplyFormat::kFull) {
  return {.sampling = kFourWordsSampling,
          .rule = rule,
          .reply_format = format,
          .draft_lengths = {2},
          .sabotage = std::move(sabotage)};
}

Law TargetsLaw() {
  return PlainLaw(FourWords(), kFourWordsSampling, {kToyPrompt}, kLength, {});
}

Enumeration ExpectExact(const ClusterConfig& config) {
  Enumeration result = Enumerate(config, FourWords(), kLength);
  ExpectLaw(result, TargetsLaw());
  EXPECT_GT(result.num_misses, 0);
  return result;
}

TEST(MovesTest, TheLawIsTheTargetsIfEveryReplyIsLostWithItsVerifier) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kTokens}) {
      ExpectExact(With({.is_verifier_lost = InEveryRound()}, rule, format));
    }
  }
}

TEST(MovesTest, TheLawIsTheTargetsWhicheverRoundTheVerifierIsLostIn) {
  for (int round = 0; round < kLength; ++round) {
    ExpectExact(With({.is_verifier_lost = InRound(round)}));
  }
}

TEST(MovesTest, TheLawIsTheTargetsIfItMovesBeforeEveryRound) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    ExpectExact(With({.round =
                          [](ToyCluster& cluster) {
                            cluster.MoveVerifier();
                            return cluster.DecoderRound();
                          }},
                     rule));
  }
}

TEST(MovesTest, TheLawIsTheTargetsIfTheTextDecidesWhenTheVerifierIsLost) {
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kTokens}) {
    ExpectExact(With({.is_verifier_lost = WhereTheFirstDraftIsZero()},
                     RuleKind::kRejection, format));
  }
}

// The other verifier takes one draft of two, also in the round that moves:
// whether the second is left out has nothing to do with what it is.
TEST(MovesTest, TheLawIsTheTargetsIfTheOtherVerifierTakesFewerDrafts) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kTokens}) {
      for (const Sabotage& sabotage :
           {Sabotage{.is_verifier_lost = InEveryRound()},
            Sabotage{.is_verifier_lost = InRound(1)},
            Sabotage{.is_verifier_lost = WhereTheFirstDraftIsZero()}}) {
        ClusterConfig config = With(sabotage, rule, format);
        config.most_drafts_elsewhere = 1;
        // A reply that is lost has flipped coins of more drafts.
        config.reuse = EnumeratingSource::Reuse::kShareUniform;
        ExpectExact(config);
      }
    }
  }
}

// The mistakes. Where drafts or coins are others after a move, the text decides
// when that comes: else they would be as good as the first.
void ExpectCaught(const std::string& id, const ClusterConfig& config) {
  const Enumeration result = Enumerate(config, FourWords(), kLength);
  const Difference joint = Compare(result.law, TargetsLaw());
  std::cout << id << ": joint TV " << joint.total_variation << ", problem \""
            << result.problem << "\"\n";
  EXPECT_TRUE(joint.max_difference > kTolerance || !result.problem.empty())
      << id << " survives";
}

// A round with drafts of this stub's. Where the verifier is lost it begins anew
// as a whole, if that is the mistake.
absl::StatusOr<Verdict> RoundWith(DraftStub& drafts, ToyCluster& cluster,
                                  bool may_begin_anew = false) {
  Session& session = cluster.session();
  NodeDraftClient drafter(
      drafts, {.context_length = 1 << 20, .drafting = {.support_size = 4}});
  NodeVerifyClient verifier(cluster.verify_stub());
  for (const bool is_second : {false, true}) {
    auto proposed = RunTask(drafter.Propose(session, 2));
    if (!proposed.ok()) return proposed.status();
    Draft& draft = proposed->draft;
    if (may_begin_anew && !is_second && draft.tokens[0] == 0) {
      cluster.MoveVerifier();
      continue;
    }
    const auto scored = RunTask(verifier.Score(session, draft));
    if (!scored.ok()) return scored.status();
    const Verdict verdict =
        AcceptPrefix(draft, scored->score.rows, session.coins());
    session.Commit(draft, verdict);
    return verdict;
  }
  return absl::InternalError("not reached");
}

TEST(MovesMutantsTest, DraftsThatAreDrawnAgainAfterAMoveAreCaught) {
  ExpectCaught("redrawn drafts", With({.round = [](ToyCluster& cluster) {
                 return RoundWith(cluster.draft_stub(), cluster,
                                  /*may_begin_anew=*/true);
               }}));
}

TEST(MovesMutantsTest, DraftsThatAreDroppedAtAMoveAreCaught) {
  ExpectCaught("dropped drafts", With({.alter_draft = [](Draft& draft) {
                 if (!draft.tokens.empty() && draft.tokens[0] == 0) {
                   draft = Draft::None(draft.start);
                 }
               }}));
}

// The verifier is lost where it accepts nothing; `epochs` new ones have begun
// once it has moved.
Sabotage LostWhereNothingIsAccepted(uint64_t epochs) {
  const auto epoch = std::make_shared<uint64_t>(0);
  return {.is_verifier_lost =
              OnceARound([epoch, epochs](ToyCluster&, const VerifyCall& call,
                                         const VerifyReply& reply) {
                const bool is_lost =
                    !call.draft_tokens.empty() &&
                    std::get<Verdict>(reply.outcome).num_accepted == 0;
                if (is_lost) *epoch += epochs;
                return is_lost;
              }),
          .coins = [epoch](RandomSource& source) {
            *epoch = 0;
            return std::make_unique<CoinsOfEpoch>(source, *epoch);
          }};
}

TEST(MovesMutantsTest, OtherCoinsAfterAMoveAreCaught) {
  ExpectExact(With(LostWhereNothingIsAccepted(/*epochs=*/0),
                   RuleKind::kRejection, ReplyFormat::kTokens));
  ExpectCaught("other coins", With(LostWhereNothingIsAccepted(/*epochs=*/1),
                                   RuleKind::kRejection, ReplyFormat::kTokens));
}

// Counts the steps of each node by itself, from 1.
class StepsAnew final : public DraftStub {
 public:
  explicit StepsAnew(DraftStub& node) : node_(node) {}
  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override {
    DraftCall counted = call;
    counted.header.step = ++num_steps_;
    absl::StatusOr<DraftReply> reply =
        co_await node_.Draft(counted, cancellation);
    if (reply.ok()) reply->header.step = call.header.step;
    co_return reply;
  }

 private:
  DraftStub& node_;
  uint64_t num_steps_ = 0;
};

TEST(MovesMutantsTest, AStepCounterThatBeginsAnewAtEachNodeIsCaught) {
  ExpectCaught("steps begin anew", With({.round = [](ToyCluster& cluster) {
                 cluster.RestartDrafter();
                 cluster.session().drafter_cache().Forget();
                 StepsAnew counting(cluster.draft_stub());
                 return RoundWith(counting, cluster);
               }}));
}

// The text of one seed after so many rounds.
TokenSeq TextOf(const ClusterConfig& config, uint64_t seed, int num_rounds) {
  ToyCluster cluster(config, FourWords(), seed);
  for (int i = 0; i < num_rounds; ++i) {
    const absl::StatusOr<Verdict> verdict = cluster.Round();
    EXPECT_TRUE(verdict.ok()) << verdict.status();
  }
  const auto tokens = cluster.session().committed().tokens();
  return {tokens.begin(), tokens.end()};
}

Sabotage MovedBefore(int round) {
  return {.round = [round](ToyCluster& cluster) {
    if (cluster.num_rounds() == round) cluster.MoveVerifier();
    return cluster.DecoderRound();
  }};
}

struct SeedCase {
  RuleKind rule = RuleKind::kRejection;
  double temperature = 0.8;
  ReplyFormat format = ReplyFormat::kFull;
};

// The text is the same to the end of the round that moves, and beyond where the
// rule promises one text for a seed: later drafts are others, as a move takes a
// step and the coins of drafts are keyed by steps.
void ExpectSameText(const SeedCase& c, bool is_promised) {
  constexpr int kNumRounds = 12;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(absl::StrCat("rule ", static_cast<int>(c.rule), ", T ",
                              c.temperature, ", format ",
                              static_cast<int>(c.format), ", seed ", seed));
    ClusterConfig config = With({}, c.rule, c.format);
    config.sampling.temperature = c.temperature;
    const ClusterConfig undisturbed = config;
    for (int round = 0; round < kNumRounds; ++round) {
      const int num_rounds = is_promised ? kNumRounds : round + 1;
      const TokenSeq text = TextOf(undisturbed, seed, num_rounds);
      for (Sabotage& sabotage : std::vector<Sabotage>{
               {.is_verifier_lost = InRound(round)}, MovedBefore(round)}) {
        config.sabotage = std::move(sabotage);
        TokenSeq moved = TextOf(config, seed, num_rounds);
        const size_t length = std::min(text.size(), moved.size());
        if (!is_promised) {
          EXPECT_EQ(moved.size(), text.size());
        }
        EXPECT_EQ(TokenSeq(moved.begin(), moved.begin() + length),
                  TokenSeq(text.begin(), text.begin() + length))
            << "round " << round;
      }
    }
  }
}

TEST(MovesTest, OneSeedGivesOneTextWhereverItMovesIfThatIsPromised) {
  for (const ReplyFormat format : {ReplyFormat::kFull, ReplyFormat::kTokens}) {
    ExpectSameText({.temperature = 0, .format = format}, /*is_promised=*/true);
    ExpectSameText({.rule = RuleKind::kCoupled, .format = format},
                   /*is_promised=*/true);
  }
}

TEST(MovesTest, TheRoundThatMovesCommitsWhatItWouldHaveUnderEveryRule) {
  for (const RuleKind rule : {RuleKind::kRejection, RuleKind::kBlock}) {
    for (const ReplyFormat format :
         {ReplyFormat::kFull, ReplyFormat::kSparse, ReplyFormat::kTokens}) {
      ExpectSameText({.rule = rule, .format = format}, /*is_promised=*/false);
    }
  }
}

}  // namespace
}  // namespace outrider::testing::moves
