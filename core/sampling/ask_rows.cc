// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/ask_rows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/mutant.h"
#include "core/sampling/adjust_logits.h"
#include "core/sampling/coins.h"
#include "core/sampling/process.h"

namespace outrider {
namespace {

bool IsCut(const SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
}

// How many of the greatest logits can decide; 0: none.
int NumTop(const SamplingParams& params, int vocab_size) {
  if (IsGreedy(params)) return 1;
  if (!IsCut(params)) return 0;
  if (params.top_k == 0 || params.min_p > 0 || vocab_size <= kMaxTopLogits) {
    return params.top_k > 0 ? std::min(params.top_k, kMaxTopLogits)
                            : kMaxTopLogits;
  }
  return params.top_k <= kMaxTopLogits ? params.top_k : 0;
}

DrawQuestion AskDraw(const DraftBlock& block, size_t row, uint64_t seed) {
  const uint64_t position = block.start + OUTRIDER_MUTANT(D1, row, row + 1);
  if (block.rule == RuleKind::kCoupled) {
    return {.noise = DrawQuestion::Noise{.seed = seed, .position = position}};
  }
  DrawQuestion question = {.uniform =
                               Coins(seed).Uniform({Purpose::kTail, position})};
  if (row < block.supports.size()) question.support = block.supports[row];
  return question;
}

}  // namespace

RowQuestion AskTop(const SamplingParams& params, const TokenHistory& history,
                   int vocab_size) {
  RowQuestion question = {
      .vocab_size = vocab_size,
      .temperature = IsGreedy(params) ? 0 : params.temperature};
  TopQuestion top = {.count = NumTop(params, vocab_size)};
  if (top.count == 0) return question;
  if (AdjustsLogits(params)) top.tokens = AdjustedTokens(params, history);
  if (top.tokens.size() > kMaxAskedTokens) return question;
  top.suffices = [&params, history](const TopAnswer& answer) {
    return ProcessTop(answer, params, history).has_value();
  };
  question.what = std::move(top);
  return question;
}

std::vector<RowQuestion> AskRows(const DraftBlock& block,
                                 const SamplingParams& params,
                                 std::optional<uint64_t> seed, int vocab_size) {
  // It compares a draft's logit with the argmax's.
  if (IsGreedy(params) && IsLossy(params)) return {};
  const bool is_drawn = !IsCut(params) && !AdjustsLogits(params);
  if (is_drawn && !seed.has_value()) return {};
  std::vector<RowQuestion> questions;
  questions.reserve(block.supports.size() + 1);
  for (size_t i = 0; i <= block.supports.size(); ++i) {
    if (!is_drawn) {
      TokenHistory history = block.history;
      history.drafts = history.drafts.first(i);
      questions.push_back(AskTop(params, history, vocab_size));
      continue;
    }
    DrawQuestion draw = AskDraw(block, i, *seed);
    RowQuestion& question = questions.emplace_back(
        RowQuestion{.vocab_size = vocab_size,
                    .temperature = IsGreedy(params) ? 0 : params.temperature});
    if (draw.support.size() <= kMaxAskedTokens) question.what = draw;
  }
  return questions;
}

}  // namespace outrider
