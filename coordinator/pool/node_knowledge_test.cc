// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/node_knowledge.h"

#include <string>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum NodeState;

NodeDescription Model(const std::string& weights_hash,
                      const std::string& tokenizer_hash = "t") {
  return {.model_name = "m",
          .weights_hash = weights_hash,
          .tokenizer_hash = tokenizer_hash,
          .vocab_size = 10,
          .context_length = 100,
          .reply_formats = {ReplyFormat::kFull}};
}

const absl::Status kGone = absl::UnavailableError("connection refused");

// Assesses verifiers with these answers, one after another round of them.
class VerifiersTest : public ::testing::Test {
 protected:
  using Answer = absl::StatusOr<NodeDescription>;

  std::vector<NodeState> Assess(const std::vector<Answer>& answers) {
    nodes_.resize(answers.size());
    std::vector<NodeKnowledge*> all;
    for (size_t i = 0; i < answers.size(); ++i) {
      nodes_[i].answer = answers[i];
      all.push_back(&nodes_[i]);
    }
    AssessVerifiers(all, tokenizer_hash_, model_);
    std::vector<NodeState> states;
    for (const NodeKnowledge& node : nodes_) states.push_back(node.state());
    return states;
  }

  std::vector<NodeKnowledge> nodes_;
  std::string tokenizer_hash_ = "t";
  ModelIdentity model_ = {};
};

TEST_F(VerifiersTest, AnotherServiceInAVerifiersPlaceIsRefusedAndSaysSo) {
  EXPECT_THAT(Assess({absl::UnimplementedError("")}), ElementsAre(kRefused));
  EXPECT_THAT(nodes_[0].fitness, StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("mixed up")));
}

TEST_F(VerifiersTest, ThoseThatAnswerAndFitAreReady) {
  EXPECT_THAT(Assess({Model("A"), kGone, Model("A"), Model("A", "other")}),
              ElementsAre(kReady, kNotReady, kReady, kRefused));
  EXPECT_THAT(nodes_[1].fitness,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("does not answer: connection refused")));
  EXPECT_THAT(nodes_[3].fitness, StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("--tokenizer")));
}

TEST_F(VerifiersTest, WithoutATokenizerOfItsOwnACoordinatorTakesAny) {
  tokenizer_hash_ = "";
  EXPECT_THAT(Assess({Model("A", "other")}), ElementsAre(kReady));
}

TEST_F(VerifiersTest, OtherWeightsWaitUntilNoneOfThoseInUseIsLeft) {
  // A rolling update from A to B.
  EXPECT_THAT(Assess({kGone, Model("A"), Model("A")}),
              ElementsAre(kNotReady, kReady, kReady));
  EXPECT_THAT(Assess({Model("B"), Model("A"), Model("A")}),
              ElementsAre(kRefused, kReady, kReady));
  EXPECT_THAT(nodes_[0].fitness,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are B, not A")));
  EXPECT_THAT(Assess({Model("B"), kGone, Model("A")}),
              ElementsAre(kRefused, kNotReady, kReady));
  EXPECT_THAT(Assess({Model("B"), Model("B"), kGone}),
              ElementsAre(kReady, kReady, kNotReady));
  // And A is the stranger now.
  EXPECT_THAT(Assess({Model("B"), Model("B"), Model("A")}),
              ElementsAre(kReady, kReady, kRefused));
}

TEST_F(VerifiersTest, AnotherNumberTypeIsAnotherModel) {
  NodeDescription rounded = Model("A");
  rounded.dtype = "bfloat16";
  NodeDescription whole = Model("A");
  whole.dtype = "float32";
  EXPECT_THAT(Assess({whole, rounded}), ElementsAre(kReady, kRefused));
  EXPECT_THAT(nodes_[1].fitness,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("number type is bfloat16, not float32")));
  EXPECT_THAT(Assess({kGone, rounded}), ElementsAre(kNotReady, kReady));
}

TEST_F(VerifiersTest, OtherKernelsAreTheSameModelForNewSessions) {
  NodeDescription other = Model("A");
  other.numerics = "avx512";
  EXPECT_THAT(Assess({Model("A"), other}), ElementsAre(kReady, kReady));
}

TEST_F(VerifiersTest, TheWeightsInUseOutlastAMomentWithoutVerifiers) {
  Assess({Model("A"), kGone});
  Assess({kGone, kGone});
  EXPECT_THAT(Assess({Model("A"), Model("B")}), ElementsAre(kReady, kRefused));
}

TEST_F(VerifiersTest,
       OneThatItsNameNoLongerHasTakesNoSessionsAndHoldsNoWeights) {
  Assess({Model("A"), Model("B")});
  nodes_[0].is_listed = false;
  EXPECT_THAT(Assess({Model("A"), Model("B")}), ElementsAre(kLeaving, kReady));
  EXPECT_FALSE(nodes_[0].ready());
}

TEST(DraftersTest, EachIsHeldAgainstTheVerifier) {
  const NodeDescription verifier = Model("A");
  std::vector<NodeKnowledge> nodes(3);
  nodes[0].answer = Model("small");
  nodes[1].answer = Model("small", "other");
  const std::vector<NodeKnowledge*> all = {&nodes[0], &nodes[1], &nodes[2]};
  AssessDrafters(all, nullptr);
  EXPECT_THAT(nodes[0].fitness, StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("no verifier")));
  AssessDrafters(all, &verifier);
  EXPECT_THAT(nodes[0].fitness, IsOk());
  EXPECT_EQ(nodes[1].state(), kRefused);
  EXPECT_EQ(nodes[2].state(), kNotReady);
}

}  // namespace
}  // namespace outrider
