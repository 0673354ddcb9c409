// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/same_weights_stub.h"

#include "core/testing/run_task.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::RunTask;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

// Gives every session the life that the test says.
class FakeNode final : public VerifyStub {
 public:
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& /*call*/,
                                           Cancellation&) override {
    VerifyReply reply;
    reply.header.incarnation = life;
    co_return reply;
  }
  Task<absl::StatusOr<NodeDescription>> Describe() {
    ++num_described;
    if (is_gone) co_return absl::UnavailableError("gone");
    co_return NodeDescription{.weights_hash = weights_hash};
  }

  Incarnation life = Incarnation::Random();
  std::string weights_hash = "old weights";
  bool is_gone = false;
  int num_described = 0;
};

class SameWeightsStubTest : public ::testing::Test {
 protected:
  absl::Status Verify() {
    Cancellation none;
    return RunTask(stub_.Verify({}, none)).status();
  }

  FakeNode node_;
  SameWeightsStub stub_{
      {.node = node_,
       .describe = [this](Cancellation&) { return node_.Describe(); },
       .weights_hash = "old weights"}};
};

TEST_F(SameWeightsStubTest, WhileTheSessionLivesOnNothingIsAsked) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 0);
}

TEST_F(SameWeightsStubTest, ASecondLifeUnderTheSameWeightsGoesOn) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 1);
}

TEST_F(SameWeightsStubTest, OtherWeightsEndTheSessionAndStayRefused) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.weights_hash = "new weights";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted,
                                   HasSubstr("other weights")));
  }
}

TEST_F(SameWeightsStubTest, ANodeThatCannotSayWhatItIsIsNotBelieved) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.is_gone = true;
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SameWeightsStubTest, AMissThatNamesNoLifeIsPassedOn) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = {};
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 0);
}

}  // namespace
}  // namespace outrider
