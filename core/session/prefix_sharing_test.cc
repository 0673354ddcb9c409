// SPDX-License-Identifier: Apache-2.0
// Sessions that begin alike, over one pool of blocks.
#include <array>
#include <chrono>
#include <map>
#include <random>
#include <variant>
#include <vector>

#include "core/session/node_sessions.h"
#include "core/testing/named_session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::Id;
using Clock = NodeSessions::Clock;
using std::chrono::seconds;

constexpr int kNumBlocks = 10;

// The first tokens of one of many texts; the `branch` of them are others.
TokenSeq Text(int length, int branch = 0, int branch_at = 0) {
  TokenSeq text(length);
  for (int i = 0; i < length; ++i) text[i] = i < branch_at ? i : i + branch;
  return text;
}

// Sessions, and what they write into their blocks: whoever reads on a block
// that another one has written finds it.
class Memory {
 public:
  explicit Memory(NodeSessions::Options options) : sessions(options) {}

  // The session, or nothing where it was not admitted.
  NodeSession* Admit(const RequestHeader& header, int num_drafts = 0) {
    outcome = sessions.Admit({header, header.step, num_drafts}, now);
    if (!outcome.ok()) return nullptr;
    auto* const* session = std::get_if<NodeSession*>(&*outcome);
    return session == nullptr ? nullptr : *session;
  }
  // A pass of what is missing of these after keep_length, and more.
  void Run(NodeSession& session, int keep_length, TokenSeq tokens) {
    const int num_cached = session.log.length() - keep_length;
    tokens.erase(tokens.begin(), tokens.begin() + num_cached);
    int position = session.log.length();
    for (const TokenId token : tokens) {
      const KvBlockId block = session.blocks[position / kKvBlockLength];
      blocks[block][position++ % kKvBlockLength] = token;
    }
    sessions.Extended(session, tokens);
  }
  bool IsRight(const SessionId& id) const {
    const NodeSession* session = sessions.Find(id);
    if (session == nullptr) return true;
    for (int i = 0; i < session->log.length(); ++i) {
      const KvBlockId block = session->blocks[i / kKvBlockLength];
      if (blocks[block][i % kKvBlockLength] != session->log.tokens()[i]) {
        return false;
      }
    }
    return true;
  }

  NodeSessions sessions;
  absl::StatusOr<NodeSessions::Outcome> outcome;
  std::array<std::array<TokenId, kKvBlockLength>, kNumBlocks> blocks = {};
  Clock::time_point now = {};
};

class PrefixSharingTest : public ::testing::Test {
 protected:
  RequestHeader Opening(uint8_t name, const TokenSeq& text,
                        const std::string& salt = "s") {
    return {.session = Id(name),
            .step = ++step_,
            .delta = {.append_tokens = text},
            .cache_salt = salt};
  }
  RequestHeader Next(uint8_t name, int keep_length, const TokenSeq& tokens) {
    return {.session = Id(name),
            .incarnation = memory_.sessions.Find(Id(name))->incarnation,
            .step = ++step_,
            .delta = {keep_length, tokens}};
  }
  // Runs the call with drafts after it; how many tokens it found. -1: refused.
  int Run(const RequestHeader& header, const TokenSeq& drafts = {}) {
    const int keep_length = header.delta.keep_length;
    NodeSession* session =
        memory_.Admit(header, static_cast<int>(drafts.size()));
    if (session == nullptr) return -1;
    const int num_found = session->log.length() - keep_length;
    TokenSeq tokens = header.delta.append_tokens;
    tokens.insert(tokens.end(), drafts.begin(), drafts.end());
    memory_.Run(*session, keep_length, tokens);
    EXPECT_TRUE(memory_.sessions.IsConsistent());
    memory_.sessions.EndRound(*session, memory_.now);
    EXPECT_TRUE(memory_.sessions.IsConsistent());
    EXPECT_TRUE(memory_.IsRight(header.session));
    return num_found;
  }
  int Open(uint8_t name, const TokenSeq& text, const std::string& salt = "s") {
    return Run(Opening(name, text, salt));
  }
  void Release(uint8_t name, bool is_over = false) {
    EXPECT_TRUE(memory_.sessions.Release(
        {.session = Id(name),
         .incarnation = memory_.sessions.Find(Id(name))->incarnation,
         .step = ++step_,
         .is_over = is_over}));
    EXPECT_TRUE(memory_.sessions.IsConsistent());
  }
  std::optional<Miss> MissOf(const RequestHeader& header) {
    EXPECT_EQ(memory_.Admit(header), nullptr);
    if (!memory_.outcome.ok()) return {};
    const Miss* miss = std::get_if<Miss>(&*memory_.outcome);
    return miss == nullptr ? std::nullopt : std::optional(*miss);
  }
  NodeSession& Session(uint8_t name) {
    return const_cast<NodeSession&>(*memory_.sessions.Find(Id(name)));
  }
  int num_free() const { return memory_.sessions.blocks().num_free(); }

  Memory memory_{{.num_blocks = kNumBlocks}};
  uint64_t step_ = 0;
};

TEST_F(PrefixSharingTest, AChatsNextTurnBeginsWithWhatTheOneBeforeLeft) {
  EXPECT_EQ(Open(1, Text(20)), 0);
  EXPECT_EQ(Run(Next(1, 20, {20}), Text(40)), 0);  // the answer, drafts at last
  Release(1);
  EXPECT_EQ(num_free(), kNumBlocks);
  EXPECT_EQ(Open(2, Text(50)), 16);
  EXPECT_EQ(num_free(), kNumBlocks - 4);
}

TEST_F(PrefixSharingTest, OfATextThatIsOverNothingIsFound) {
  Open(1, Text(40), "a stream's own");
  Release(1, /*is_over=*/true);
  EXPECT_EQ(num_free(), kNumBlocks);
  EXPECT_EQ(Open(2, Text(40), "a stream's own"), 0);
}

// The first one is still there when it is resumed, and its release comes late.
TEST_F(PrefixSharingTest, WhoGoesOnWithATextKeepsItWhenItIsOverElsewhere) {
  Open(1, Text(40), "a stream's own");
  EXPECT_EQ(Open(2, Text(50), "a stream's own"), 32);
  Release(1, /*is_over=*/true);
  EXPECT_EQ(Run(Next(2, 50, {50})), 0);
}

TEST_F(PrefixSharingTest, WhatTheAnswerWasIsKnownToo) {
  Open(1, Text(20));
  TokenSeq answer = Text(60);
  answer.erase(answer.begin(), answer.begin() + 20);
  Run(Next(1, 20, answer));
  Run(Next(1, 60, {60}));
  Release(1);
  EXPECT_EQ(Open(2, Text(70)), 48);
}

TEST_F(PrefixSharingTest, TheLastTokenIsAlwaysRun) {
  Open(1, Text(32));
  EXPECT_EQ(Open(2, Text(32)), 16);
  EXPECT_EQ(Open(3, Text(33)), 32);
}

TEST_F(PrefixSharingTest, OnlySessionsOfOneSaltShare) {
  Open(1, Text(20), "a");
  Release(1);
  EXPECT_EQ(Open(2, Text(20), "b"), 0);
  EXPECT_EQ(Open(3, Text(20), ""), 0);
  Release(3);
  EXPECT_EQ(Open(4, Text(20), ""), 0);
  EXPECT_EQ(Open(5, Text(20), "a"), 16);
}

TEST_F(PrefixSharingTest, LiveSessionsOwnABlockTogetherAndItCountsOnce) {
  Open(1, Text(40));
  EXPECT_EQ(Open(2, Text(40)), 32);
  EXPECT_EQ(num_free(), kNumBlocks - 4);
  EXPECT_EQ(memory_.sessions.blocks().num_shared(), 2);
  Release(1);
  EXPECT_EQ(num_free(), kNumBlocks - 3);
  EXPECT_TRUE(memory_.IsRight(Id(2)));
}

// An opening of a salted session in a full node is admitted by what it shares.
TEST_F(PrefixSharingTest, SharedBlocksNeedNoRoom) {
  Open(1, Text(120));
  EXPECT_EQ(Open(2, Text(100), "another"), -1);
  EXPECT_EQ(Open(2, Text(100)), 96);
}

// How many sessions of one salt may be opened with one text.
int NumOfOneText(int text_length, const NodeSessions::Options& options) {
  NodeSessions sessions(options);
  int num_open = 0;
  for (int name = 0; name < 4096; ++name) {
    SessionId id = Id(1);
    id.bytes[1] = static_cast<uint8_t>(name);
    id.bytes[2] = static_cast<uint8_t>(name >> 8);
    const auto outcome =
        sessions.Admit({{.session = id,
                         .step = 1,
                         .delta = {.append_tokens = Text(text_length)},
                         .cache_salt = "s"},
                        /*content_digest=*/1},
                       {});
    if (!outcome.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(outcome.status()));
      break;
    }
    NodeSession& session = *std::get<NodeSession*>(*outcome);
    const int length = session.log.length();
    const TokenSeq text = Text(text_length);
    sessions.Extended(session, absl::MakeConstSpan(text).subspan(length));
    sessions.EndRound(session, {});
    ++num_open;
  }
  return num_open;
}

// Each has the text itself, of some bytes a token, whoever shares its blocks.
TEST(PrefixSharingMemoryTest, AnOpeningIsRefusedWhereTextsTakeTooMuchMemory) {
  // Blocks would do for a hundred: each has one of its own, and one to come.
  EXPECT_EQ(NumOfOneText(3201, {.num_blocks = 400, .max_sessions = 4096}),
            32 * 400 * 16 / 3201);
}

TEST(PrefixSharingMemoryTest, WhereBlocksAreTextsTheseHaveNoMoreThanFits) {
  EXPECT_EQ(NumOfOneText(641, {.num_blocks = 400, .blocks_are_text = true}),
            400 * 16 / 641);
}

TEST_F(PrefixSharingTest, WhatIsKeptGivesWayToAnybody) {
  Open(1, Text(100));
  Release(1);
  EXPECT_EQ(num_free(), kNumBlocks);
  EXPECT_EQ(Open(2, Text(160, 1000), ""), 0);
  Release(2);
  EXPECT_EQ(Open(3, Text(100)), 0);
}

TEST_F(PrefixSharingTest, RefusedOpeningsOwnNothing) {
  Open(1, Text(64));
  Open(2, Text(64, 1000), "");
  EXPECT_EQ(Open(3, Text(120, 1, 64)), -1);
  EXPECT_EQ(num_free(), 2);
  EXPECT_EQ(memory_.sessions.blocks().num_shared(), 0);
}

// Whoever asks again and again would have its text kept before all others'.
TEST_F(PrefixSharingTest, RefusedOpeningsHaveUsedNothing) {
  Open(1, Text(33));
  Release(1);
  Open(2, Text(33, 1000));
  Release(2);
  Open(3, Text(96, 2000), "");
  EXPECT_EQ(Open(4, Text(80)), -1);  // three blocks more than it would find
  EXPECT_EQ(Run(Next(3, 96, Text(32))), 0);
  Release(3);
  EXPECT_EQ(Open(5, Text(33, 1000)), 32);
  EXPECT_EQ(Open(6, Text(33)), 0);  // was taken, as the longest unused
}

// A draft may be refused, and then another token comes into its place.
TEST_F(PrefixSharingTest, DraftsAreNotSharedBeforeTheyStand) {
  Run(Opening(1, Text(30)), {30, 31, 32});
  EXPECT_EQ(Open(2, Text(40)), 16);
  Run(Next(1, 31, {77}), {78});
  EXPECT_TRUE(memory_.IsRight(Id(2)));
  EXPECT_EQ(Open(3, Text(40)), 32);  // of the second one
}

TEST_F(PrefixSharingTest, ACutIntoASharedBlockIsAMissOfItsBeginning) {
  Open(1, Text(40));
  Open(2, Text(40));
  const auto miss = MissOf(Next(2, 20, {99}));
  ASSERT_TRUE(miss.has_value());
  EXPECT_EQ(miss->reason, MissReason::kLength);
  EXPECT_EQ(miss->cached_length, 16);
  EXPECT_EQ(Run(Next(2, 16, {16, 17, 18, 19, 99})), 0);
  EXPECT_TRUE(memory_.IsRight(Id(1)));
  // It is found where nobody owns it now, too, as it is known by its text.
  Release(2);
  EXPECT_EQ(MissOf(Next(1, 20, {99}))->cached_length, 16);
}

TEST_F(PrefixSharingTest, AnAdvisoryCutGoesToTheBeginningOfASharedBlock) {
  Open(1, Text(40));
  EXPECT_TRUE(memory_.sessions.Truncate(Next(1, 0, {}), 20));
  EXPECT_EQ(Session(1).log.length(), 16);
  EXPECT_TRUE(memory_.sessions.IsConsistent());
}

TEST_F(PrefixSharingTest, ARetryIsNoCutIntoWhatTheCallItselfLeft) {
  const RequestHeader opening = Opening(1, Text(40));
  EXPECT_EQ(Run(opening), 0);
  EXPECT_EQ(Run(opening), 32);
  TokenSeq more = Text(70);
  more.erase(more.begin(), more.begin() + 40);
  const RequestHeader next = Next(1, 40, more);
  EXPECT_EQ(Run(next), 0);
  EXPECT_EQ(Run(next), 0);
}

TEST_F(PrefixSharingTest, WhatMayBeWrongIsLeftToNobody) {
  Open(1, Text(40));
  Open(2, Text(40));
  memory_.sessions.Discard(Session(1));
  EXPECT_TRUE(memory_.sessions.IsConsistent());
  EXPECT_EQ(Open(3, Text(40)), 0);
  // The other session may not write where a third one has come to share.
  EXPECT_EQ(MissOf(Next(3, 20, {99}))->cached_length, 16);
  EXPECT_TRUE(memory_.IsRight(Id(2)));
}

// Whoever shares them goes on with them, and leaves them to nobody either.
TEST_F(PrefixSharingTest, WhatMayBeWrongIsNotEnteredAgainByThoseWhoShareIt) {
  Open(1, Text(40));
  Open(2, Text(40));
  memory_.sessions.Discard(Session(1));
  EXPECT_EQ(Run(Next(2, 40, {40})), 0);
  EXPECT_EQ(Open(4, Text(30)), 0);
  Release(2);
  Release(4);
  EXPECT_EQ(Open(5, Text(60)), 16);  // of the one that computed it anew
}

TEST_F(PrefixSharingTest, WhatATextThatIsOverSharesIsStillFound) {
  Open(1, Text(64), "a stream's own");
  Open(2, Text(40), "a stream's own");
  Release(1, /*is_over=*/true);
  EXPECT_EQ(Open(3, Text(64), "a stream's own"), 32);
  EXPECT_EQ(Run(Next(2, 40, Text(20, 1000))), 0);
}

TEST_F(PrefixSharingTest, APreemptedSessionFindsItsOwnBlocksAgain) {
  Open(1, Text(64, 1000), "");
  Open(2, Text(60));
  EXPECT_EQ(Run(Next(1, 64, Text(33))), 0);
  EXPECT_EQ(memory_.sessions.num_preempted(), 1);
  EXPECT_TRUE(Session(2).blocks.empty());
  // Of three that are free one is left to the older session.
  EXPECT_EQ(Run(Next(2, 0, Text(48))), -1);
  EXPECT_EQ(Run(Next(2, 0, Text(32))), 16);
}

TEST_F(PrefixSharingTest, BlocksThatVictimsShareAreFreeOnceAllAreCut) {
  Open(1, Text(48, 1000), "");
  Open(2, Text(64));
  Open(3, Text(60));
  EXPECT_EQ(num_free(), 2);
  EXPECT_EQ(Run(Next(1, 48, Text(7 * 16))), 0);
  EXPECT_EQ(memory_.sessions.num_preempted(), 2);
  EXPECT_EQ(num_free(), 0);
}

TEST(PrefixSharingModesTest, AllShareWithoutASaltWhereTheNodeIsOneTenants) {
  for (const auto& [name, sharing] : PrefixSharingNames()) {
    NodeSessions sessions({.num_blocks = kNumBlocks, .sharing = sharing});
    for (uint8_t id = 1; id <= 2; ++id) {
      const auto outcome = sessions.Admit(
          {{.session = Id(id), .step = 1, .delta = {.append_tokens = Text(20)}},
           /*content_digest=*/1},
          {});
      ASSERT_TRUE(outcome.ok());
      NodeSession& session = *std::get<NodeSession*>(*outcome);
      const bool is_found = id == 2 && sharing == PrefixSharing::kAll;
      EXPECT_EQ(session.log.length(), is_found ? 16 : 0) << name;
      sessions.Extended(session, session.log.length() > 0
                                     ? TokenSeq{16, 17, 18, 19}
                                     : Text(20));
      sessions.EndRound(session, {});
    }
  }
}

// What has no salt begins as others do, whom nobody has asked.
TEST(PrefixSharingModesTest, WhereAllShareATextThatIsOverIsKept) {
  NodeSessions sessions(
      {.num_blocks = kNumBlocks, .sharing = PrefixSharing::kAll});
  for (uint8_t id = 1; id <= 3; ++id) {
    RequestHeader header = {
        .session = Id(id), .step = 1, .delta = {.append_tokens = Text(20)}};
    const auto outcome = sessions.Admit({header, /*content_digest=*/1}, {});
    ASSERT_TRUE(outcome.ok());
    NodeSession& session = *std::get<NodeSession*>(*outcome);
    EXPECT_EQ(session.log.length(), id == 1 ? 0 : 16);
    sessions.Extended(session, id == 1 ? Text(20) : TokenSeq{16, 17, 18, 19});
    sessions.EndRound(session, {});
    header.incarnation = session.incarnation;
    header.is_over = true;
    EXPECT_TRUE(sessions.Release(header));
  }
}

// Texts that begin alike and part, salts, cuts, drafts, retries, failures: no
// block is lost, and none is written that somebody else reads.
TEST_F(PrefixSharingTest, EachReadsItsOwnTextAfterEveryStepOfARandomSchedule) {
  std::mt19937 random(7);
  const auto upto = [&](int n) { return static_cast<int>(random() % n); };
  struct Call {
    NodeSession* session;
    int keep_length;
    TokenSeq tokens;
  };
  std::map<uint8_t, Call> at_work;
  int num_found = 0;
  NodeSessions& sessions = memory_.sessions;
  for (int step = 1; step <= 20000; ++step) {
    memory_.now += std::chrono::milliseconds(upto(400));
    const auto name = static_cast<uint8_t>(1 + upto(6));
    const NodeSession* session = sessions.Find(Id(name));
    const int choice = upto(10);
    if (choice < 5 && !at_work.contains(name)) {
      RequestHeader header = {.session = Id(name),
                              .step = static_cast<uint64_t>(step),
                              .cache_salt = upto(3) == 0 ? "a" : "b"};
      TokenSeq text = Text(1 + upto(80), 100 * upto(3), 16 * upto(4));
      if (session != nullptr && choice > 0) {
        header.incarnation = session->incarnation;
        const int length = session->log.length();
        header.delta.keep_length = upto(3) == 0 ? 0 : upto(length + 1);
      }
      header.delta.append_tokens = text;
      const int num_drafts = upto(20);
      if (NodeSession* admitted = memory_.Admit(header, num_drafts)) {
        const int keep_length = header.delta.keep_length;
        num_found += admitted->log.length() - keep_length;
        text.resize(text.size() + num_drafts, 500 + upto(2));
        at_work[name] = {admitted, keep_length, text};
      }
    } else if (choice < 8 && at_work.contains(name)) {
      const Call& call = at_work.at(name);
      memory_.Run(*call.session, call.keep_length, call.tokens);
      const int end = upto(9);
      if (end > 1) {
        sessions.EndRound(*call.session, memory_.now);
      } else if (end == 1) {
        sessions.Drop(*call.session);
      } else {
        sessions.Discard(*call.session);
      }
      at_work.erase(name);
    } else if (choice == 8 && session != nullptr) {
      const RequestHeader header = {.session = Id(name),
                                    .incarnation = session->incarnation,
                                    .step = static_cast<uint64_t>(step),
                                    .is_over = upto(4) == 0};
      upto(3) > 0 ? sessions.Truncate(header, upto(50))
                  : sessions.Release(header);
    } else {
      sessions.Expire(memory_.now);
    }
    ASSERT_TRUE(sessions.IsConsistent()) << "step " << step;
    for (uint8_t id = 1; id <= 6; ++id) {
      ASSERT_TRUE(memory_.IsRight(Id(id))) << "step " << step;
    }
  }
  EXPECT_GT(num_found, 10000);
  EXPECT_GT(sessions.num_preempted(), 100);
}

}  // namespace
}  // namespace outrider
