// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/plain_decoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace outrider::testing {
namespace {

std::vector<double> Probabilities(const std::vector<float>& logits,
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
    p[id] = std::exp((static_cast<double>(logits[id]) - logits[order[0]]) /
                     params.temperature);
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
      const auto p = Probabilities(model.Target(context), params);
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
