// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/ask_rows.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

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

RowQuestion WholeRow(const SamplingParams& params, int vocab_size) {
  return {.vocab_size = vocab_size,
          .temperature = IsGreedy(params) ? 0 : params.temperature};
}

RowQuestion AskDraw(const DraftBlock& block, size_t row,
                    const SamplingParams& params, const LogitMoves& moves,
                    uint64_t seed, int vocab_size) {
  const uint64_t position = block.start + OUTRIDER_MUTANT(D1, row, row + 1);
  RowQuestion question = WholeRow(params, vocab_size);
  if (moves.tokens.size() > kMaxAskedTokens) return question;
  DrawQuestion draw = {.moves = moves};
  if (block.rule == RuleKind::kCoupled) {
    draw.noise = DrawQuestion::Noise{.seed = seed, .position = position};
  } else {
    draw.uniform = Coins(seed).Uniform({Purpose::kTail, position});
    if (row < block.supports.size()) draw.support = block.supports[row];
  }
  size_t num_asked = draw.support.size();
  if (block.logprobs.has_value()) {
    draw.scored = AskScores(*block.logprobs, draw.support, moves);
    num_asked += draw.scored->tokens.size();
  }
  if (num_asked <= kMaxAskedTokens) question.what = std::move(draw);
  return question;
}

// What is told of a cut row has all that may come there, and so its scores.
void AskScoresOfTop(const LogprobsOptions& logprobs, RowQuestion& question) {
  auto* const top = std::get_if<TopQuestion>(&question.what);
  if (top == nullptr) return;
  const TopQuestion scores = AskScores(logprobs, {}, {});
  top->count = std::max(top->count, scores.count);
  top->wants_top_probability = scores.wants_top_probability;
}

}  // namespace

bool IsDrawn(const SamplingParams& params) {
  // Penalties at temperature 0 want no weight, but the greatest of what they
  // leave.
  return !IsCut(params) && !(IsGreedy(params) && AdjustsLogits(params));
}

RowQuestion AskTop(const SamplingParams& params, LogitMoves moves,
                   int vocab_size) {
  RowQuestion question = WholeRow(params, vocab_size);
  const int count = NumTop(params, vocab_size);
  if (count == 0 || moves.tokens.size() > kMaxAskedTokens) return question;
  std::vector<TokenId> tokens = TokensOf(moves);
  question.what = TopQuestion{
      .count = count,
      .tokens = std::move(tokens),
      .suffices = [&params, moves = std::move(moves)](TopAnswer& answer) {
        auto row = ProcessTop(answer, params, moves);
        if (!row.has_value()) return false;
        answer.row = std::make_shared<const Distribution>(*std::move(row));
        return true;
      }};
  return question;
}

std::vector<RowQuestion> AskRows(const DraftBlock& block,
                                 const SamplingParams& params,
                                 std::optional<uint64_t> seed, int vocab_size) {
  // It compares a draft's logit with the argmax's.
  if (IsGreedy(params) && IsLossy(params)) return {};
  if (IsDrawn(params) && !seed.has_value()) return {};
  TokenHistory history = block.history;
  history.drafts = {};
  absl::StatusOr<LogitMoves> moves = MovesOf(params, history, vocab_size);
  if (!moves.ok()) return {};
  std::vector<RowQuestion> questions;
  questions.reserve(block.supports.size() + 1);
  for (size_t i = 0; i <= block.supports.size(); ++i) {
    if (OUTRIDER_MUTANT(D4, i > 0, false)) {
      AddGenerated(block.history.drafts[i - 1], params, *moves);
    }
    if (IsDrawn(params)) {
      questions.push_back(AskDraw(block, i, params, *moves, *seed, vocab_size));
      continue;
    }
    questions.push_back(AskTop(params, *moves, vocab_size));
    if (block.logprobs.has_value()) {
      AskScoresOfTop(*block.logprobs, questions.back());
    }
  }
  return questions;
}

}  // namespace outrider
