// SPDX-License-Identifier: Apache-2.0
// Sessions on verifiers that die, hang and drain, in virtual time.
#include "coordinator/pool/session_verifier.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/pool/poison.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/event_loop.h"
#include "tests/support/loop_timer.h"

namespace outrider {
namespace {

using ::outrider::testing::EventLoop;
using ::outrider::testing::IsOk;
using ::outrider::testing::LoopTimer;
using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;

constexpr char kVerifiers[] = "verifiers:7002";
constexpr milliseconds kStep(10);  // what a node takes over one

// A process, and the connection to it.
struct FakeProcess {
  bool is_up = true;
  bool is_hung = false;
  bool is_draining = false;
  int num_lives = 1;
  int num_breaks = 0;  // of its connections
  int num_in_flight = 0;
  std::map<SessionId, Incarnation> sessions = {};
  // Each of these takes it down, from this step on.
  const std::map<SessionId, uint64_t>* poison = nullptr;
  int num_deaths = 0;

  void Die() {
    is_up = false;
    ++num_deaths;
    ++num_lives;
    ++num_breaks;
    sessions.clear();
  }
};

class FakeStub final : public SharedVerifyStub {
 public:
  FakeStub(EventLoop& loop, FakeProcess& process)
      : loop_(loop), process_(process) {}

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           milliseconds timeout,
                                           Cancellation&) override {
    if (!process_.is_up) co_return absl::UnavailableError("refused");
    const int num_breaks = process_.num_breaks;
    ++process_.num_in_flight;
    co_await loop_.Sleep(process_.is_hung ? timeout : kStep);
    --process_.num_in_flight;
    if (process_.is_hung) co_return absl::DeadlineExceededError("hangs");
    const RequestHeader& header = call.header;
    const auto poison = process_.poison->find(header.session);
    if (process_.is_up && poison != process_.poison->end() &&
        header.step >= poison->second) {
      process_.Die();
    }
    if (process_.num_breaks != num_breaks) {
      co_return absl::UnavailableError("the connection broke");
    }
    VerifyReply reply = {.outcome = Verdict{}};
    reply.header.session = header.session;
    reply.header.step = header.step;
    reply.header.is_draining = process_.is_draining;
    reply.header.compute_seconds = 0.01;
    if (header.incarnation.is_none()) {
      process_.sessions[header.session] = Incarnation::Random();
    } else if (process_.sessions[header.session] != header.incarnation) {
      reply.outcome = Miss{MissReason::kUnknownIncarnation, 0};
      co_return reply;
    }
    reply.header.incarnation = process_.sessions[header.session];
    co_return reply;
  }
  milliseconds TimeoutOf(const VerifyCall&) const override {
    return std::chrono::seconds(30);
  }
  Task<absl::StatusOr<NodeDescription>> Describe(milliseconds,
                                                 Cancellation&) override {
    if (!process_.is_up) co_return absl::UnavailableError("refused");
    if (process_.is_draining) co_return absl::UnavailableError("draining");
    co_return NodeDescription{.weights_hash = "weights",
                              .vocab_size = 10,
                              .context_length = 1000,
                              .reply_formats = {ReplyFormat::kFull}};
  }

 private:
  EventLoop& loop_;
  FakeProcess& process_;
};

class FakeCache final : public CacheStub {
 public:
  Task<void> Release(RequestHeader, Cancellation&) override { co_return; }
};

// Verifiers at 1.1.1.1:1 and so on, each asked four times a second what it is.
class FakePool final : public SessionPool {
 public:
  FakePool(EventLoop& loop, std::vector<FakeProcess>& processes)
      : loop_(loop), processes_(processes), timer_(loop) {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < processes.size(); ++i) {
      addresses.push_back(absl::StrCat("1.1.1.", i, ":1"));
    }
    group_.SetAddresses(kVerifiers, addresses);
    Ask();
  }

  NodeGroup<VerifierNode>::Choice ChooseVerifier(
      const SessionId& session,
      const NodeGroup<VerifierNode>::Fits& fits) override {
    return group_.Choose(session, fits);
  }
  NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId&, const NodeGroup<DrafterNode>::Fits&) override {
    return {};
  }
  bool HasVerifier() const override { return num_ready_ > 0; }
  bool HasSeveralVerifiers() const override { return num_ready_ > 1; }
  Timer& timer() override { return timer_; }
  WaitingRoom& waiting_room() override { return room_; }
  NodeReleases& releases() override { return releases_; }
  SessionMoves& moves() override { return moves_; }

  void Ask() {
    Cancellation none;
    for (VerifierNode* node : group_.TakeToAsk()) {
      StartDetached(Learn(*node, none));
    }
    AssessVerifiers(group_.knowledge(), {}, tokenizer_);
    num_ready_ = 0;
    for (const NodeKnowledge* node : group_.knowledge()) {
      num_ready_ += node->ready() ? 1 : 0;
    }
    loop_.After(milliseconds(250), [this] {
      if (!is_closed) Ask();
    });
  }

  bool is_closed = false;

 private:
  Task<void> Learn(VerifierNode& node, Cancellation& none) {
    group_.Learn(node, co_await node.stub->Describe({}, none));
  }
  std::unique_ptr<VerifierNode> Make(const std::string& name,
                                     const std::string& address) {
    FakeProcess& process = processes_[num_made_++];
    return std::unique_ptr<VerifierNode>(new VerifierNode{
        .link = {.name = name,
                 .address = address,
                 .is_connected = [&process] { return process.is_up; }},
        .stub = std::make_unique<FakeStub>(loop_, process),
        .cache = std::make_unique<FakeCache>()});
  }

  EventLoop& loop_;
  std::vector<FakeProcess>& processes_;
  LoopTimer timer_;
  size_t num_made_ = 0;
  int num_ready_ = 0;
  std::string tokenizer_;
  NodeGroup<VerifierNode> group_{
      {kVerifiers},
      [this](const std::string& name, const std::string& address) {
        return Make(name, address);
      }};
  WaitingRoom room_{/*max_waiting=*/64};
  SessionMoves moves_;
  NodeReleases releases_{room_};
};

class SessionVerifierTest : public ::testing::Test {
 protected:
  struct Stream {
    std::unique_ptr<SessionVerifier> verifier;
    SessionId id;
    int num_steps = 0;                     // answered
    std::optional<absl::Status> end = {};  // none: it runs
  };

  void Start(size_t num_verifiers, size_t num_streams) {
    processes_.resize(num_verifiers);
    for (FakeProcess& process : processes_) process.poison = &poison_;
    pool_.emplace(loop_, processes_);
    for (size_t i = 0; i < num_streams; ++i) AddStream();
  }
  Stream& AddStream(std::optional<uint64_t> poison_from = {}) {
    auto stream = std::make_unique<Stream>();
    stream->id = SessionId::FromBytes(
        absl::StrCat(1000 + streams_.size(), "abcdefghijkl"));
    if (poison_from.has_value()) poison_[stream->id] = *poison_from;
    auto choice = pool_->ChooseVerifier(stream->id, {});
    stream->verifier = std::make_unique<SessionVerifier>(
        *pool_, stream->id, std::move(choice.seat), choice.description);
    streams_.push_back(std::move(stream));
    StartDetached(Run(*streams_.back()));
    return *streams_.back();
  }
  // Step after step, as a round's client does it.
  Task<void> Run(Stream& stream) {
    VerifyCall call = {.header = {.session = stream.id,
                                  .step = 1,
                                  .delta = {.append_tokens = {1, 2}}},
                       .prompt_length = 2};
    while (stream.num_steps < num_steps_) {
      auto reply = co_await stream.verifier->Verify(call, cancellation_);
      if (!reply.ok()) {
        stream.end = reply.status();
        co_return;
      }
      ++call.header.step;
      if (std::holds_alternative<Miss>(reply->outcome)) {
        call.header.incarnation = {};
        continue;
      }
      call.header.incarnation = reply->header.incarnation;
      ++stream.num_steps;
      // A client that is nobody's first.
      co_await loop_.Sleep(milliseconds(1));
    }
    stream.end = absl::OkStatus();
  }
  template <typename Condition>
  void RunUntil(Condition condition) {
    while (!condition() && loop_.elapsed() < std::chrono::minutes(10)) {
      ASSERT_TRUE(loop_.RunOne());
    }
    ASSERT_TRUE(condition());
  }
  void RunToEnd() {
    RunUntil([&] {
      return std::all_of(streams_.begin(), streams_.end(),
                         [](const auto& one) { return one->end.has_value(); });
    });
  }
  bool HaveAllSteps(int num_steps) const {
    return std::all_of(streams_.begin(), streams_.end(), [&](const auto& one) {
      return one->num_steps >= num_steps;
    });
  }
  int NumDeaths() const {
    int sum = 0;
    for (const FakeProcess& process : processes_) sum += process.num_deaths;
    return sum;
  }
  // A platform that starts again what has died.
  void Restart(milliseconds after) {
    for (FakeProcess& process : processes_) {
      if (process.is_up || restarting_.contains(&process)) continue;
      restarting_.insert(&process);
      loop_.After(after, [this, &process] {
        restarting_.erase(&process);
        process.is_up = true;
      });
    }
    loop_.After(milliseconds(50), [this, after] {
      if (!pool_->is_closed) Restart(after);
    });
  }
  int64_t NumMoves(MoveReason reason) {
    return pool_->moves().of_verifiers[static_cast<int>(reason)];
  }
  int NumEndedByPoison() const {
    return static_cast<int>(
        std::count_if(streams_.begin(), streams_.end(), [](const auto& one) {
          return one->end.has_value() && IsPoison(*one->end);
        }));
  }
  void ExpectTheOnlyVerifierTakenTwice(uint64_t poison_from) {
    Start(/*num_verifiers=*/1, /*num_streams=*/5);
    RunUntil([&] { return HaveAllSteps(3); });
    AddStream(poison_from);
    Restart(/*after=*/std::chrono::seconds(5));
    RunToEnd();
    EXPECT_EQ(NumDeaths(), 2);
    EXPECT_EQ(NumEndedByPoison(), 1);
  }
  ~SessionVerifierTest() override {
    // Those that have not ended, as they should have, end now.
    num_steps_ = 0;
    cancellation_.Cancel();
    pool_->is_closed = true;
    while (loop_.RunOne()) {
    }
    streams_.clear();
  }

  EventLoop loop_;
  int num_steps_ = 100;
  std::map<SessionId, uint64_t> poison_;
  std::vector<FakeProcess> processes_;
  std::set<FakeProcess*> restarting_;
  Cancellation cancellation_;
  std::optional<FakePool> pool_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(SessionVerifierTest, ARequestThatTakesVerifiersDownTakesTwoAndNoOther) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  Stream& poison = AddStream(/*poison_from=*/5);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_THAT(*poison.end, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(NumEndedByPoison(), 1);
  for (const auto& stream : streams_) {
    EXPECT_EQ(stream->end->ok(), stream.get() != &poison);
  }
}

TEST_F(SessionVerifierTest, AnOpeningThatTakesVerifiersDownTakesTwo) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  Stream& poison = AddStream(/*poison_from=*/0);
  RunToEnd();
  EXPECT_EQ(NumDeaths(), 2);
  EXPECT_TRUE(IsPoison(*poison.end));
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(SessionVerifierTest, TheOnlyVerifierIsTakenTwiceIfItIsStartedAgain) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/5);
}

TEST_F(SessionVerifierTest, TheOnlyVerifierIsTakenTwiceByAnOpening) {
  ExpectTheOnlyVerifierTakenTwice(/*poison_from=*/0);
}

TEST_F(SessionVerifierTest,
       StreamsThatHaveAnsweredInBetweenSurviveThreeLosses) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  for (int i = 0; i < 3; ++i) {
    RunUntil([&] { return HaveAllSteps(20 * (i + 1)); });
    processes_[i].Die();
  }
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(SessionVerifierTest, OfTheManyThatLoseTwoAtOnceOneAtMostIsEnded) {
  Start(/*num_verifiers=*/2, /*num_streams=*/0);
  processes_[1].is_up = false;
  pool_->Ask();
  for (int i = 0; i < 20; ++i) AddStream();
  processes_[1].is_up = true;
  pool_->Ask();
  RunUntil([&] { return processes_[0].num_in_flight == 20; });
  processes_[0].Die();
  // The first of them has just come in.
  RunUntil([&] { return processes_[1].num_in_flight > 0; });
  EXPECT_EQ(processes_[1].num_in_flight, 1);
  processes_[1].Die();
  processes_[0].is_up = true;
  RunToEnd();
  EXPECT_EQ(NumEndedByPoison(), 1);
}

TEST_F(SessionVerifierTest, VerifiersThatAllDieAtOnceEndNoStream) {
  Start(/*num_verifiers=*/3, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(3); });
  for (FakeProcess& process : processes_) process.Die();
  Restart(/*after=*/std::chrono::seconds(10));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
  EXPECT_GT(loop_.elapsed(), std::chrono::seconds(10));
}

TEST_F(SessionVerifierTest, AConnectionThatBreaksUnderAVerifierMovesNobody) {
  Start(/*num_verifiers=*/2, /*num_streams=*/20);
  for (int i = 1; i <= 5; ++i) {
    RunUntil([&] {
      return HaveAllSteps(10 * i) && processes_[0].num_in_flight > 0 &&
             processes_[1].num_in_flight > 0;
    });
    ++processes_[0].num_breaks;
    ++processes_[1].num_breaks;
  }
  RunToEnd();
  EXPECT_EQ(NumMoves(MoveReason::kLost), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

TEST_F(SessionVerifierTest, VerifiersThatHangOrDrainMakeNoSuspects) {
  Start(/*num_verifiers=*/4, /*num_streams=*/20);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].is_hung = true;
  processes_[1].is_hung = true;
  RunUntil([&] { return HaveAllSteps(30); });
  processes_[2].is_draining = true;
  RunToEnd();
  EXPECT_GT(NumMoves(MoveReason::kLate), 0);
  EXPECT_GT(NumMoves(MoveReason::kDraining), 0);
  EXPECT_EQ(NumMoves(MoveReason::kLost), 0);
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

// Fifty at once: a quarter of the other's time is theirs, and no more is lost
// with them being suspects.
TEST_F(SessionVerifierTest, SuspectsAreBackWhenTheTextsOfAllAreTakenIn) {
  Start(/*num_verifiers=*/2, /*num_streams=*/100);
  RunUntil([&] { return HaveAllSteps(10); });
  processes_[0].Die();
  const auto lost_at = loop_.elapsed();
  RunUntil([&] { return HaveAllSteps(13); });
  EXPECT_LT(loop_.elapsed() - lost_at, 50 * 4 * (kStep + milliseconds(10)));
  RunToEnd();
  for (const auto& stream : streams_) EXPECT_THAT(*stream->end, IsOk());
}

}  // namespace
}  // namespace outrider
