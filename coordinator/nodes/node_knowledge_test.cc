// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_knowledge.h"

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

const absl::Status kNotThere = absl::UnavailableError("connection refused");

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
    AssessVerifiers(all, terms_, tokenizer_hash_);
    std::vector<NodeState> states;
    for (const NodeKnowledge& node : nodes_) states.push_back(node.state());
    return states;
  }

  std::vector<NodeKnowledge> nodes_;
  VerifierTerms terms_ = {.tokenizer_hash = "t"};
  std::string tokenizer_hash_ = {};
};

TEST_F(VerifiersTest, AnotherServiceInAVerifiersPlaceIsRefusedAndSaysSo) {
  EXPECT_THAT(Assess({absl::UnimplementedError("")}), ElementsAre(kRefused));
  EXPECT_THAT(nodes_[0].fitness, StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("mixed up")));
}

TEST_F(VerifiersTest, ThoseThatAnswerAndFitAreReady) {
  EXPECT_THAT(Assess({Model("A"), kNotThere, Model("A"), Model("A", "other")}),
              ElementsAre(kReady, kNotReady, kReady, kRefused));
  EXPECT_THAT(nodes_[1].fitness,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("does not answer: connection refused")));
  EXPECT_THAT(nodes_[3].fitness, StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("--tokenizer")));
}

TEST_F(VerifiersTest, WithoutATokenizerOfItsOwnACoordinatorTakesAny) {
  terms_ = {};
  EXPECT_THAT(Assess({Model("A", "other")}), ElementsAre(kReady));
  // No second one is ready beside it then, for as long as it is there.
  EXPECT_THAT(Assess({Model("A", "other"), Model("A", "t")}),
              ElementsAre(kReady, kRefused));
  EXPECT_THAT(nodes_[1].fitness, StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("its tokenizer")));
  EXPECT_THAT(Assess({kNotThere, kNotThere}),
              ElementsAre(kNotReady, kNotReady));
  EXPECT_THAT(Assess({Model("A", "t"), Model("A", "other")}),
              ElementsAre(kRefused, kReady));
  EXPECT_THAT(Assess({Model("A", "t"), kNotThere}),
              ElementsAre(kReady, kNotReady));
}

TEST_F(VerifiersTest, BothWeightsOfARollOutTakeSessions) {
  NodeDescription rounded = Model("B");
  rounded.dtype = "bfloat16";
  EXPECT_THAT(Assess({Model("A"), Model("A"), Model("B"), rounded}),
              ElementsAre(kReady, kReady, kReady, kReady));
}

TEST_F(VerifiersTest, WeightsThatAreNotExpectedTakeNone) {
  terms_.weights = {"A", "B"};
  EXPECT_THAT(Assess({Model("A"), Model("B"), Model("C"), Model("")}),
              ElementsAre(kReady, kReady, kRefused, kRefused));
  EXPECT_THAT(nodes_[2].fitness,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its weights are C, but --expect-weights")));
}

TEST_F(VerifiersTest, OtherKernelsAreTheSameModelForNewSessions) {
  NodeDescription other = Model("A");
  other.numerics = "avx512";
  EXPECT_THAT(Assess({Model("A"), other}), ElementsAre(kReady, kReady));
}

TEST_F(VerifiersTest, OneThatItsNameNoLongerHasTakesNoSessions) {
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
