// SPDX-License-Identifier: Apache-2.0
// Lenience: with l = 1 the law is the target's; below it is the one that the
// formula gives, computed here on its own; and no reply format changes a token.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::lossy {
namespace {

constexpr ReplyFormat kFormats[] = {ReplyFormat::kFull, ReplyFormat::kSparse,
                                    ReplyFormat::kTokens};

std::vector<double> Softmax(const std::vector<float>& logits,
                            double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) {
    p.push_back(std::exp(logit / temperature));
    sum += p.back();
  }
  for (double& probability : p) probability /= sum;
  return p;
}

// The drafter's row: its two most probable words alone.
std::vector<double> TopTwo(std::vector<double> q) {
  std::vector<double> sorted = q;
  std::sort(sorted.rbegin(), sorted.rend());
  for (double& probability : q) {
    if (probability < sorted[1]) probability = 0;
    probability /= sorted[0] + sorted[1];
  }
  return q;
}

// Shares no code with production: what a token's place in its round makes of
// p and q, and from there all texts.
class LossyLaw {
 public:
  LossyLaw(const ToyModel& model, double temperature, double lenience)
      : model_(model), temperature_(temperature), lenience_(lenience) {}

  Law OfRounds(int k, int length) {
    k_ = k;
    length_ = length;
    law_.clear();
    Extend({}, 0, 1);
    return law_;
  }

 private:
  // `place` drafts of the round stand already.
  void Extend(const TokenSeq& text, int place, double mass) {
    if (mass == 0) return;
    if (static_cast<int>(text.size()) == length_) {
      law_[text] += mass;
      return;
    }
    TokenSeq context = {kToyPrompt};
    context.insert(context.end(), text.begin(), text.end());
    if (temperature_ == 0) {
      ExtendGreedily(text, context, place);
      return;
    }
    const auto p = Softmax(model_.Target(context), temperature_);
    const auto q = TopTwo(Softmax(model_.Drafter(context), temperature_));
    if (place == k_) {
      for (size_t v = 0; v < p.size(); ++v)
        Extend(With(text, v), 0, mass * p[v]);
      return;
    }
    double refused = 1;
    double residual = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      const double stands = std::min(q[v], p[v] / lenience_);
      refused -= stands;
      residual += std::max(0.0, p[v] - q[v]);
      Extend(With(text, v), place + 1, mass * stands);
    }
    if (refused < 1e-15) return;
    for (size_t v = 0; v < p.size(); ++v) {
      Extend(With(text, v), 0,
             mass * refused * std::max(0.0, p[v] - q[v]) / residual);
    }
  }

  void ExtendGreedily(const TokenSeq& text, const TokenSeq& context,
                      int place) {
    const auto p = Softmax(model_.Target(context), 1);
    const auto drafter = model_.Drafter(context);
    const size_t best = std::max_element(p.begin(), p.end()) - p.begin();
    const size_t draft =
        std::max_element(drafter.begin(), drafter.end()) - drafter.begin();
    const bool stands = place < k_ && p[draft] >= lenience_ * p[best];
    if (stands) {
      Extend(With(text, draft), place + 1, 1);
    } else {
      Extend(With(text, best), 0, 1);
    }
  }

  static TokenSeq With(TokenSeq text, size_t token) {
    text.push_back(static_cast<TokenId>(token));
    return text;
  }

  const ToyModel& model_;
  const double temperature_;
  const double lenience_;
  int k_ = 0;
  int length_ = 0;
  Law law_;
};

ClusterConfig Config(double temperature, double lenience, int k,
                     ReplyFormat format = ReplyFormat::kFull) {
  ClusterConfig config = {
      .sampling = {.temperature = temperature, .lossy_lenience = lenience},
      .drafting = {.support_size = 2},
      .reply_format = format,
      .draft_lengths = {k}};
  if (format == ReplyFormat::kSparse) {
    config.reuse = EnumeratingSource::Reuse::kShareUniform;
  }
  return config;
}

Enumeration Check(const ClusterConfig& config, const ToyModel& model,
                  int length, const Law& right) {
  const Enumeration result = Enumerate(config, model, length);
  ExpectLaw(result, right);
  EXPECT_EQ(result.num_misses, 0);
  return result;
}

TEST(LossyTest, LenienceOfOneIsExact) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
    const ToyModel model(3, drafter);
    for (const ReplyFormat format : kFormats) {
      for (const double temperature : {0.0, 0.8}) {
        SCOPED_TRACE(absl::StrCat("format ", static_cast<int>(format), ", T ",
                                  temperature));
        const ClusterConfig config = Config(temperature, 1, 2, format);
        Check(config, model, 3,
              PlainLaw(model, config.sampling, {kToyPrompt}, 3, {}));
      }
    }
  }
}

TEST(LossyTest, TheLawBelowOneIsTheFormulas) {
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
    const ToyModel model(3, drafter);
    for (const ReplyFormat format : kFormats) {
      for (const double lenience : {0.9, 0.5, 0.1}) {
        for (const int k : {1, 2}) {
          SCOPED_TRACE(absl::StrCat("drafter ", static_cast<int>(drafter),
                                    ", format ", static_cast<int>(format),
                                    ", l ", lenience, ", K ", k));
          Check(Config(0.8, lenience, k, format), model, 4,
                LossyLaw(model, 0.8, lenience).OfRounds(k, 4));
        }
      }
    }
  }
}

TEST(LossyTest, AtTemperatureZeroItIsOneTextAndTheFormulas) {
  int num_lossy = 0;
  for (const DrafterKind drafter :
       {DrafterKind::kCorrelated, DrafterKind::kReversed}) {
    const ToyModel model(5, drafter);
    const Law plain = PlainLaw(model, {.temperature = 0}, {kToyPrompt}, 16, {});
    for (const ReplyFormat format : kFormats) {
      for (const double lenience : {0.8, 0.4, 0.1}) {
        for (const int k : {1, 3}) {
          SCOPED_TRACE(absl::StrCat("format ", static_cast<int>(format), ", l ",
                                    lenience, ", K ", k));
          const Law right = LossyLaw(model, 0, lenience).OfRounds(k, 16);
          Check(Config(0, lenience, k, format), model, 16, right);
          num_lossy += right != plain;
        }
      }
    }
  }
  EXPECT_GT(num_lossy, 3);
}

// What is paid, and what for: another law, more drafts accepted, no token more
// often than p / l.
TEST(LossyTest, LessLenienceIsFurtherFromTheTargetAndAcceptsMore) {
  const ToyModel model(4, DrafterKind::kReversed);
  const Law plain = PlainLaw(model, {}, {kToyPrompt}, 1, {});
  double distance = 0;
  double accepted = 0;
  for (const double lenience : {1.0, 0.7, 0.4, 0.1}) {
    const Law right = LossyLaw(model, 1, lenience).OfRounds(1, 1);
    const Enumeration result = Check(Config(1, lenience, 1), model, 1, right);
    const double total_variation = Compare(result.law, plain).total_variation;
    EXPECT_GE(total_variation, distance);
    EXPECT_GT(result.expected_accepted, accepted);
    distance = total_variation;
    accepted = result.expected_accepted;
    for (const auto& [text, mass] : result.law) {
      EXPECT_LE(mass, plain.at(text) / lenience + kTolerance);
    }
  }
  EXPECT_GT(distance, 0.1);
}

TokenSeq Decode(const ClusterConfig& config, const ToyModel& model,
                uint64_t seed) {
  ToyCluster cluster(config, model, seed);
  while (!cluster.session().is_complete()) {
    if (const auto verdict = cluster.Round(); !verdict.ok()) {
      ADD_FAILURE() << verdict.status();
      break;
    }
  }
  const auto tokens = cluster.session().committed().tokens();
  return {tokens.begin(), tokens.end()};
}

TEST(LossyTest, OneSeedGivesOneTextInEveryFormat) {
  const ToyModel model(5, DrafterKind::kReversed);
  for (const double temperature : {0.0, 0.9}) {
    for (const uint64_t seed : {1, 2, 3}) {
      std::vector<TokenSeq> texts;
      for (const ReplyFormat format : kFormats) {
        ClusterConfig config = {
            .sampling = {.temperature = temperature,
                         .top_p = 0.95,
                         .repetition_penalty = 1.2,
                         .frequency_penalty = 0.3,
                         .logit_bias = {{2, 0.5}},
                         .lossy_lenience = 0.5},
            .drafting = {.support_size = 3, .round_weights = true},
            .reply_format = format,
            .draft_lengths = {4, 0, 2},
            .has_first_round = true,
            .max_length = 121,
            .num_deliveries = 2};
        texts.push_back(Decode(config, model, seed));
      }
      EXPECT_EQ(texts[0].size(), 121u);
      EXPECT_EQ(texts[0], texts[1]);
      EXPECT_EQ(texts[0], texts[2]);
    }
  }
}

}  // namespace
}  // namespace outrider::testing::lossy
