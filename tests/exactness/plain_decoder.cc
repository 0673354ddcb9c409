// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/plain_decoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace outrider::testing {
namespace {

// Bias and penalties, token by token: each walks through the whole text.
std::vector<double> Adjusted(const std::vector<float>& logits,
                             const SamplingParams& params,
                             const TokenSeq& context, size_t prompt_length) {
  std::vector<double> adjusted;
  for (int id = 0; id < static_cast<int>(logits.size()); ++id) {
    double logit = logits[id];
    for (const auto& [biased, bias] : params.logit_bias) {
      if (biased == id) logit = logit + bias;
    }
    if (std::count(context.begin(), context.end(), id) > 0) {
      logit = logit > 0 ? logit / params.repetition_penalty
                        : logit * params.repetition_penalty;
    }
    const auto times =
        std::count(context.begin() + prompt_length, context.end(), id);
    logit = logit - params.frequency_penalty * static_cast<double>(times);
    logit = logit - (times > 0 ? params.presence_penalty : 0.0);
    adjusted.push_back(logit);
  }
  return adjusted;
}

std::vector<double> Probabilities(const std::vector<double>& logits,
                                  const SamplingParams& params) {
  // Ids, most probable first; equal ones in order of id.
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return logits[a] > logits[b]; });
  std::vector<double> p(logits.size(), 0.0);
  if (params.temperature < 1e-4) {
    p[order[0]] = 1;
    return p;
  }
  if (params.top_k > 0 && params.top_k < static_cast<int>(order.size())) {
    order.resize(params.top_k);
  }
  double sum = 0;
  for (const int id : order) {
    p[id] = std::exp((logits[id] - logits[order[0]]) / params.temperature);
    if (p[id] < params.min_p) p[id] = 0;
    sum += p[id];
  }
  double mass = 0;
  double kept = 0;
  for (const int id : order) {
    const bool reached = params.top_p < 1 && mass >= params.top_p * sum;
    mass += p[id];
    if (reached) p[id] = 0;
    kept += p[id];
  }
  for (double& probability : p) probability /= kept;
  return p;
}

}  // namespace

Law PlainLaw(const ToyModel& model, const SamplingParams& params,
             const TokenSeq& prompt, int length,
             const std::vector<TokenId>& eos_ids) {
  Law law;
  Law open = {{{}, 1.0}};
  for (int i = 0; i < length; ++i) {
    Law longer;
    for (const auto& [text, probability] : open) {
      TokenSeq context = prompt;
      context.insert(context.end(), text.begin(), text.end());
      const auto p = Probabilities(
          Adjusted(model.Target(context), params, context, prompt.size()),
          params);
      for (TokenId id = 0; id < model.vocab_size(); ++id) {
        if (p[id] == 0) continue;
        TokenSeq next = text;
        next.push_back(id);
        const bool ends =
            i + 1 == length || std::count(eos_ids.begin(), eos_ids.end(), id);
        (ends ? law : longer)[next] = probability * p[id];
      }
    }
    open = longer;
  }
  return law;
}

}  // namespace outrider::testing
