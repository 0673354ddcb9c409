// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/rejection.h"

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "core/testing/enumerating_source.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::EnumeratingSource;

constexpr uint64_t kDraftStart = 5;

// The law of the first token that a round with one draft from q emits.
std::map<TokenId, double> OutputLaw(const Distribution& p,
                                    const Distribution& q) {
  std::map<TokenId, double> law;
  EnumeratingSource source;
  while (source.NextTrace()) {
    const size_t place =
        source.Categorical({Purpose::kDraft, kDraftStart, 1}, q.weights());
    const Draft draft = {.start = kDraftStart,
                         .tokens = {q.support()[place]},
                         .distributions = {q}};
    const std::vector<TargetRow> target = {
        TargetRow::FromDense(p, q.support(), kDraftStart, source),
        TargetRow::FromDense(p, {}, kDraftStart + 1, source)};
    const Verdict verdict = AcceptPrefix(draft, target, source);
    const TokenId first =
        verdict.num_accepted > 0 ? draft.tokens[0] : verdict.next_token;
    law[first] += source.probability();
  }
  EXPECT_EQ(source.violation(), "");
  return law;
}

void ExpectLaw(const Distribution& p, const Distribution& q) {
  double mass = 0;
  for (const auto& [token, probability] : OutputLaw(p, q)) {
    EXPECT_NEAR(probability, p(token), 1e-15) << "token " << token;
    if (p(token) == 0) {
      EXPECT_EQ(probability, 0);
    }
    mass += probability;
  }
  EXPECT_NEAR(mass, 1, 1e-15);
}

TEST(RejectionTest, EmitsPWhateverQIs) {
  const Distribution p =
      Distribution::FromSorted({0, 1, 2, 3}, {0.1, 0.2, 0.3, 0.4});
  ExpectLaw(p, p);
  ExpectLaw(p, Distribution::FromSorted({0, 1, 2, 3}, {0.4, 0.3, 0.2, 0.1}));
  for (const TokenId v : {0, 3}) ExpectLaw(p, Distribution::OneHot(v));
  ExpectLaw(Distribution::OneHot(2), p);
  ExpectLaw(Distribution::OneHot(2), Distribution::OneHot(2));
  ExpectLaw(Distribution::OneHot(2), Distribution::OneHot(1));
  // Disjoint supports.
  ExpectLaw(Distribution::FromSorted({0, 2}, {0.5, 0.5}),
            Distribution::FromSorted({1, 3}, {0.9, 0.1}));
}

TEST(RejectionTest, EmitsPForRandomRowsWithZerosAndExtremes) {
  std::mt19937 bits(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto random_row = [&] {
    std::vector<TokenId> ids;
    std::vector<double> weights;
    for (TokenId id = 0; id < 6; ++id) {
      const double kind = uniform(bits);
      if (kind < 0.3 && id > 0) continue;
      ids.push_back(id);
      weights.push_back(kind < 0.4   ? 0x1p-1074
                        : kind < 0.5 ? 1e-38
                        : kind < 0.6 ? 3e38
                                     : uniform(bits) + 1e-9);
    }
    return Distribution::FromSorted(std::move(ids), std::move(weights));
  };
  for (int trial = 0; trial < 500; ++trial) {
    const Distribution q = random_row();
    // What a wire would refuse: a token of the row that has no probability.
    bool is_valid = true;
    for (const TokenId v : q.support()) is_valid &= q(v) > 0;
    if (is_valid) ExpectLaw(random_row(), q);
  }
}

// p = q up to one unit in the last place: either nothing is refused, or what
// replaces it is possible.
TEST(RejectionTest, RowsThatDifferByRoundingStillGiveAPossibleToken) {
  for (const double up : {0.0, 1.0}) {
    std::vector<double> weights = {0.1, 0.2, 0.7};
    const Distribution p = Distribution::FromSorted({0, 1, 2}, weights);
    weights[1] = std::nextafter(weights[1], up);
    const Distribution q = Distribution::FromSorted({0, 1, 2}, weights);
    for (const auto& [token, probability] : OutputLaw(p, q)) {
      EXPECT_NEAR(probability, p(token), 1e-15);
    }
  }
}

// A source that refuses at one place and notes what it is asked.
class Script final : public RandomSource {
 public:
  explicit Script(uint64_t refused_position) : refused_(refused_position) {}
  bool Accept(const CoinKey& key, double, double) override {
    asked.push_back(key);
    return key.position != refused_;
  }
  size_t Categorical(const CoinKey& key,
                     absl::Span<const double> weights) override {
    asked.push_back(key);
    for (size_t i = weights.size(); i > 0; --i) {
      if (weights[i - 1] > 0) return i - 1;
    }
    return 0;
  }
  size_t Race(uint64_t position, absl::Span<const TokenId>,
              absl::Span<const double> weights) override {
    return Categorical({Purpose::kGumbel, position}, weights);
  }
  std::vector<CoinKey> asked;

 private:
  const uint64_t refused_;
};

TEST(RejectionTest, StopsAtTheFirstRefusalAndReadsNoCoinAfterIt) {
  const Distribution q = Distribution::FromSorted({0, 1}, {0.5, 0.5});
  const Distribution p = Distribution::FromSorted({0, 1, 2}, {0.2, 0.6, 0.2});
  const Draft draft = {
      .start = kDraftStart, .tokens = {0, 1, 0}, .distributions = {q, q, q}};
  for (int refused = 0; refused <= 3; ++refused) {
    Script script(kDraftStart + refused);
    std::vector<TargetRow> target;
    for (int i = 0; i < 3; ++i) {
      target.push_back(
          TargetRow::FromDense(p, q.support(), kDraftStart + i, script));
    }
    target.push_back(TargetRow::FromDense(p, {}, kDraftStart + 3, script));
    const Verdict verdict = RejectionRule().Judge(draft, target, script);
    EXPECT_EQ(verdict.num_accepted, refused);
    EXPECT_EQ(verdict.next_token, 2);
    for (const CoinKey& key : script.asked) {
      EXPECT_LE(key.position, kDraftStart + refused);
      EXPECT_EQ(key.generation, 0u);
    }
    EXPECT_EQ(script.asked.back(),
              (CoinKey{Purpose::kTail, kDraftStart + refused}));
  }
}

TEST(RejectionTest, NoDraftIsPlainDecoding) {
  Script script(0);
  const Distribution p = Distribution::FromSorted({2, 4}, {1.0, 2.0});
  const std::vector<TargetRow> target = {
      TargetRow::FromDense(p, {}, kDraftStart, script)};
  EXPECT_EQ(AcceptPrefix({.start = kDraftStart}, target, script),
            (Verdict{0, 4}));
  EXPECT_EQ(script.asked,
            (std::vector<CoinKey>{{Purpose::kTail, kDraftStart}}));
}

TEST(RejectionDeathTest, NeedsOneRowMoreThanDrafts) {
  Script script(0);
  EXPECT_DEATH(AcceptPrefix({.start = kDraftStart}, {}, script),
               "check failed");
}

}  // namespace
}  // namespace outrider
