// SPDX-License-Identifier: Apache-2.0
#include "core/testing/answer_on_host.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/sampling/adjust_logits.h"
#include "core/sampling/coins.h"
#include "core/sampling/draft_confidence.h"
#include "core/sampling/process.h"

namespace outrider::testing {
namespace {

bool IsAmong(absl::Span<const TokenId> tokens, TokenId token) {
  return std::binary_search(tokens.begin(), tokens.end(), token);
}

double WeightOf(double logit, double top, double temperature) {
  return std::exp((logit - top) / temperature);
}

DrawAnswer Draw(const DrawQuestion& draw, double temperature,
                absl::Span<const float> row) {
  std::vector<double> logits(row.begin(), row.end());
  for (const MovedToken& moved : draw.moves.tokens) {
    logits[moved.token] = MovedLogit(draw.moves, moved, logits[moved.token]);
  }
  const auto argmax = std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  for (auto logit = logits.begin(); logit != logits.end(); ++logit) {
    weights.push_back(temperature > 0 ? WeightOf(*logit, *argmax, temperature)
                                      : (logit == argmax ? 1.0 : 0.0));
  }
  DrawAnswer answer;
  std::vector<double> off = weights;
  for (const TokenId token : draw.support) {
    answer.support_weights.push_back(weights[token]);
    off[token] = 0;
  }
  answer.tail = std::accumulate(off.begin(), off.end(), 0.0);
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (draw.noise.has_value()) {
    Coins coins(draw.noise->seed);
    answer.drawn =
        static_cast<TokenId>(coins.Race(draw.noise->position, ids, weights));
  } else if (answer.tail > 0) {
    answer.drawn = static_cast<TokenId>(ChooseByWeight(draw.uniform, off));
  }
  if (answer.drawn.has_value()) answer.drawn_logit = row[*answer.drawn];
  return answer;
}

TopAnswer Top(const TopQuestion& top, double temperature,
              absl::Span<const float> logits, int most) {
  TopAnswer answer = {.tokens = top.tokens};
  for (const TokenId token : top.tokens) {
    answer.token_logits.push_back(logits[token]);
  }
  std::vector<TokenId> others;
  for (TokenId id = 0; id < static_cast<TokenId>(logits.size()); ++id) {
    if (!IsAmong(top.tokens, id) && !std::isinf(logits[id])) {
      others.push_back(id);
    }
  }
  std::stable_sort(others.begin(), others.end(),
                   [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  const auto count =
      std::min(static_cast<size_t>(std::min(top.count, most)), others.size());
  const auto edge = others.begin() + static_cast<ptrdiff_t>(count);
  answer.is_all = static_cast<int>(others.size()) < std::min(top.count, most);
  for (auto other = edge; other != others.end() && temperature > 0; ++other) {
    answer.rest += WeightOf(logits[*other], logits[others[0]], temperature);
  }
  others.erase(edge, others.end());
  std::sort(others.begin(), others.end());
  for (const TokenId id : others) answer.logits.push_back(logits[id]);
  answer.ids = std::move(others);
  if (top.wants_top_probability) {
    answer.top_probability = TopProbability(logits);
  }
  return answer;
}

}  // namespace

std::optional<RowAnswer> AnswerOnHost(const RowQuestion& question,
                                      absl::Span<const float> logits,
                                      int most_top) {
  logits = logits.first(static_cast<size_t>(question.vocab_size));
  if (!CheckLogits(logits).ok()) return std::nullopt;
  if (const auto* draw = std::get_if<DrawQuestion>(&question.what)) {
    DrawAnswer answer = Draw(*draw, question.temperature, logits);
    if (draw->scored.has_value()) {
      answer.scored =
          Top(*draw->scored, question.temperature, logits, most_top);
    }
    return answer;
  }
  if (const auto* top = std::get_if<TopQuestion>(&question.what)) {
    TopAnswer answer = Top(*top, question.temperature, logits, most_top);
    if (!top->suffices || top->suffices(answer)) return answer;
  }
  return std::nullopt;
}

}  // namespace outrider::testing
