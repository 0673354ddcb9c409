// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/answered_law.h"

#include <utility>

#include "gtest/gtest.h"

namespace outrider::testing {
namespace {

constexpr int kLength = 3;

}  // namespace

std::vector<SamplingParams> CutProcessings() {
  return {{.temperature = 0.8, .top_k = 2},
          {.temperature = 0.8, .top_k = 3},
          {.top_p = 0.6},
          {.top_p = 0.9},
          {.min_p = 0.3},
          {.temperature = 1.3, .top_p = 0.8, .min_p = 0.2},
          {.temperature = 0.8, .top_k = 2, .repetition_penalty = 1.7},
          {.top_p = 0.7, .presence_penalty = 0.9},
          {.top_p = 0.7, .frequency_penalty = -0.7},
          {.top_k = 1, .logit_bias = {{0, 1.2}, {2, -0.8}}},
          {.temperature = 0.8,
           .top_k = 3,
           .top_p = 0.9,
           .min_p = 0.05,
           .repetition_penalty = 1.4,
           .presence_penalty = 0.5,
           .frequency_penalty = 0.3,
           .logit_bias = {{0, -0.5}, {3, 1.0}}},
          {.temperature = 0, .repetition_penalty = 1.6},
          {.temperature = 0, .logit_bias = {{1, 0.7}}}};
}

ClusterConfig AnsweredConfig(const SamplingParams& sampling, ReplyFormat format,
                             TableLm::Answer answer) {
  // A SPARSE row's tail token is drawn whether or not it will be read.
  const bool is_sparse = format == ReplyFormat::kSparse;
  return {.sampling = sampling,
          .drafting = {.support_size = 2},
          .reply_format = format,
          .draft_lengths = {is_sparse ? 1 : 2, 1},
          .answer = std::move(answer),
          .reuse = is_sparse ? EnumeratingSource::Reuse::kShareUniform
                             : EnumeratingSource::Reuse::kRefuse};
}

Difference AnsweredDifference(const ClusterConfig& config) {
  const Enumeration result = Enumerate(config, FourWords(), kLength);
  EXPECT_EQ(result.problem, "");
  return Compare(result.law, PlainLaw(FourWords(), config.sampling,
                                      {kToyPrompt}, kLength, {}));
}

}  // namespace outrider::testing
