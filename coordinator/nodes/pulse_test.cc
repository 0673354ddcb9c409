// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/pulse.h"

#include <chrono>
#include <optional>

#include "gtest/gtest.h"
#include "tests/support/event_loop.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

class PulseTest : public ::testing::Test {
 protected:
  void Pass(milliseconds time) { loop_.StandStill(time); }
  bool IsQuiet() const { return pulse_.IsQuiet(loop_.now()); }
  // Others are heard all the time.
  bool IsSilent() const { return pulse_.IsSilent(loop_.now(), loop_.now()); }

  testing::EventLoop loop_;
  Pulse pulse_;
  Cancellation session_;
  std::optional<Pulse::Call> call_;
};

TEST_F(PulseTest, ANodeThatNobodyWaitsForIsNotQuiet) {
  Pass(milliseconds(10'000));
  EXPECT_FALSE(IsQuiet());
  call_.emplace(pulse_, session_);
  EXPECT_FALSE(IsQuiet());
  Pass(milliseconds(200));
  EXPECT_TRUE(IsQuiet());
}

TEST_F(PulseTest, ANodeThatAnswersAnybodyIsNotQuiet) {
  call_.emplace(pulse_, session_);
  Pass(milliseconds(200));
  pulse_.Heard(loop_.now());
  EXPECT_FALSE(IsQuiet());
}

TEST_F(PulseTest, SilenceCountsFromTheFirstQuestion) {
  call_.emplace(pulse_, session_);
  Pass(milliseconds(10'000));
  EXPECT_FALSE(IsSilent());
  pulse_.Asked(loop_.now());
  Pass(milliseconds(200));
  EXPECT_FALSE(IsSilent());
  pulse_.Asked(loop_.now());
  Pass(milliseconds(200));
  EXPECT_TRUE(IsSilent());
  pulse_.Heard(loop_.now());
  EXPECT_FALSE(IsSilent());
}

// It may be us who hear nothing.
TEST_F(PulseTest, NobodyIsSilentWhereNobodyElseWasHeardSinceItWasAsked) {
  const auto before = loop_.now();
  Pass(milliseconds(1));
  pulse_.Asked(loop_.now());
  Pass(milliseconds(10'000));
  EXPECT_FALSE(pulse_.IsSilent(loop_.now(), before));
  EXPECT_TRUE(IsSilent());
}

TEST_F(PulseTest, ANodeThatSaysThatItIsNotReadyIsNotSilent) {
  call_.emplace(pulse_, session_);
  pulse_.Asked(loop_.now());
  Pass(milliseconds(10'000));
  pulse_.Refused();
  EXPECT_FALSE(IsSilent());
  EXPECT_TRUE(IsQuiet());
}

TEST_F(PulseTest, ANodeWhoseAnswersTakeLongIsGivenFourTimesThat) {
  pulse_.Answered(milliseconds(500), loop_.now());
  pulse_.Asked(loop_.now());
  Pass(milliseconds(2000));
  EXPECT_FALSE(IsSilent());
  Pass(milliseconds(1));
  EXPECT_TRUE(IsSilent());
}

// How long it hung is no pace: the next silence would be found late.
TEST_F(PulseTest, ANodeThatWasGivenUpHasAThirdMoreOfTime) {
  pulse_.Asked(loop_.now());
  Pass(milliseconds(301));
  EXPECT_TRUE(IsSilent());
  pulse_.GiveUp();
  pulse_.Heard(loop_.now());  // by a call that does not listen
  pulse_.Answered(milliseconds(5000), loop_.now());
  pulse_.Asked(loop_.now());
  Pass(milliseconds(400));
  EXPECT_FALSE(IsSilent());
  Pass(milliseconds(1));
  EXPECT_TRUE(IsSilent());
}

TEST_F(PulseTest, AnAnswerAfterItWasGivenUpIsItsReturn) {
  EXPECT_FALSE(pulse_.Answered(milliseconds(1), loop_.now()));
  pulse_.GiveUp();
  pulse_.Heard(loop_.now());  // by a call that does not listen
  EXPECT_TRUE(pulse_.Answered(milliseconds(1), loop_.now()));
  EXPECT_FALSE(pulse_.Answered(milliseconds(1), loop_.now()));
}

TEST_F(PulseTest, WhoWasAwayBeginsToListen) {
  call_.emplace(pulse_, session_);
  pulse_.Asked(loop_.now());
  Pass(milliseconds(10'000));
  pulse_.ListenAnew(loop_.now());
  EXPECT_FALSE(IsQuiet());
  EXPECT_FALSE(IsSilent());
}

TEST_F(PulseTest, ACallIsGivenUpWhichIsNotItsSessionsEnd) {
  call_.emplace(pulse_, session_);
  EXPECT_FALSE(call_->is_given_up());
  pulse_.GiveUp();
  EXPECT_TRUE(call_->cancellation().cancelled());
  EXPECT_TRUE(call_->is_given_up());
  EXPECT_FALSE(session_.cancelled());
}

TEST_F(PulseTest, ACallEndsWithItsSession) {
  call_.emplace(pulse_, session_);
  session_.Cancel();
  EXPECT_TRUE(call_->cancellation().cancelled());
  EXPECT_FALSE(call_->is_given_up());
}

}  // namespace
}  // namespace outrider
