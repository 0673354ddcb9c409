// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/same_model_stub.h"

#include <optional>
#include <vector>

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
    if (is_lost) co_return absl::UnavailableError("lost");
    VerifyReply reply;
    reply.header.incarnation = life;
    if (says_its_model) {
      reply.model = {
          .weights_hash = weights_hash, .dtype = dtype, .numerics = numerics};
    }
    co_return reply;
  }
  Task<absl::StatusOr<NodeDescription>> Describe() {
    ++num_described;
    if (is_gone) co_return absl::UnavailableError("gone");
    co_return NodeDescription{
        .weights_hash = weights_hash, .dtype = dtype, .numerics = numerics};
  }

  Incarnation life = Incarnation::Random();
  std::string weights_hash = "old weights";
  std::string dtype = "float32";
  std::string numerics = "avx2";
  bool says_its_model = false;  // an older node does not
  bool is_gone = false;
  bool is_lost = false;
  int num_described = 0;
};

class SameModelStubTest : public ::testing::Test {
 protected:
  absl::Status Verify() {
    Cancellation none;
    return RunTask(stub_->Verify(call_, none)).status();
  }
  void Begin(double temperature) {
    call_.sampling.temperature = temperature;
    stub_.emplace(SameModelStub::Options{
        .node = node_,
        .describe = [this](Cancellation&) { return node_.Describe(); },
        .on_other =
            [this](const ModelIdentity& model) { others_.push_back(model); },
        .model = {.weights_hash = "old weights",
                  .dtype = "float32",
                  .numerics = "avx2"}});
  }
  SameModelStubTest() { Begin(/*temperature=*/1); }

  FakeNode node_;
  std::vector<ModelIdentity> others_;  // that were found in its place
  VerifyCall call_ = {.header = {.delta = {.append_tokens = {1, 2}}},
                      .prompt_length = 2};
  std::optional<SameModelStub> stub_;
};

TEST_F(SameModelStubTest, WhileTheSessionLivesOnNothingIsAsked) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 0);
}

TEST_F(SameModelStubTest, ASecondLifeUnderTheSameWeightsGoesOn) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 1);
}

TEST_F(SameModelStubTest, OtherWeightsEndTheSessionAndStayRefused) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.weights_hash = "new weights";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted,
                                   HasSubstr("weights are new")));
  }
}

TEST_F(SameModelStubTest, AnotherNumberTypeEndsTheSession) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.dtype = "bfloat16";
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted,
                                 HasSubstr("number type is bfloat16")));
}

TEST_F(SameModelStubTest, OtherKernelsEndASessionWhoseVeryTextIsPromised) {
  for (const bool is_promised : {false, true}) {
    Begin(/*temperature=*/is_promised ? 0 : 1);
    node_.numerics = "avx2";
    EXPECT_THAT(Verify(), IsOk());
    node_.life = Incarnation::Random();
    node_.numerics = "avx512";
    EXPECT_EQ(Verify().code(),
              is_promised ? absl::StatusCode::kAborted : absl::StatusCode::kOk);
  }
}

TEST_F(SameModelStubTest, KernelsThatWereAcceptedAreTheSessions) {
  Begin(/*temperature=*/0);
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.numerics = "avx512";
  stub_->Accept("avx512");
  EXPECT_THAT(Verify(), IsOk());
}

TEST_F(SameModelStubTest, ATextThatGoesOnMakesItAskAtTheFirstLifeToo) {
  call_.header.delta.append_tokens = {1, 2, 3};
  node_.weights_hash = "new weights";
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted));
  node_.weights_hash = "old weights";
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 2);
}

TEST_F(SameModelStubTest, AnOpeningThatFailedMayFindAnotherModelThere) {
  node_.is_lost = true;
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kUnavailable));
  node_.is_lost = false;
  node_.weights_hash = "new weights";
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted));
  node_.weights_hash = "old weights";
  EXPECT_THAT(Verify(), IsOk());
}

// The node was replaced after it was last asked, and before it was called.
TEST_F(SameModelStubTest, AStreamDoesNotBeginWithAnotherModelThanItIsChosenAs) {
  node_.says_its_model = true;
  node_.weights_hash = "new weights";
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted,
                                 HasSubstr("weights are new")));
  ASSERT_EQ(others_.size(), 1u);
  EXPECT_EQ(others_[0].weights_hash, "new weights");
}

TEST_F(SameModelStubTest, WhatAReplySaysIsNotAskedOnceMore) {
  node_.says_its_model = true;
  node_.is_gone = true;
  for (int i = 0; i < 2; ++i) {
    node_.life = Incarnation::Random();
    EXPECT_THAT(Verify(), IsOk());
  }
  node_.life = Incarnation::Random();
  node_.weights_hash = "new weights";
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(node_.num_described, 0);
}

TEST_F(SameModelStubTest, ANodeThatCannotSayWhatItIsIsNotBelieved) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = Incarnation::Random();
  node_.is_gone = true;
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SameModelStubTest, AMissThatNamesNoLifeIsPassedOn) {
  EXPECT_THAT(Verify(), IsOk());
  node_.life = {};
  EXPECT_THAT(Verify(), IsOk());
  EXPECT_EQ(node_.num_described, 0);
}

}  // namespace
}  // namespace outrider
