// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/toy_model.h"

#include <algorithm>
#include <limits>
#include <random>

#include "core/base/bfloat16.h"

namespace outrider::testing {
namespace {

uint32_t Hash(const TokenSeq& context, uint32_t salt) {
  uint32_t hash = 2166136261u ^ (salt * 7919u);
  for (const TokenId token : context) {
    hash ^= static_cast<uint32_t>(token + 1);
    hash *= 16777619u;
  }
  return hash;
}

}  // namespace

std::vector<double> ToyModel::Logits(const TokenSeq& context,
                                     uint32_t who) const {
  std::vector<double>& row = rows_[who][context];
  if (row.empty()) {
    std::mt19937 bits(Hash(context, who * 1000 + 17));
    std::normal_distribution<double> normal(0, 1.2);
    for (int i = 0; i < vocab_size_; ++i) row.push_back(normal(bits));
  }
  return row;
}

std::vector<float> ToyModel::Target(absl::Span<const TokenId> context) const {
  const std::vector<double> row =
      Logits({context.begin() + 1, context.end()}, 0);
  std::vector<float> logits(row.begin(), row.end());
  if (target_is_rounded_) {
    for (float& logit : logits) logit = ToFloat(ToBFloat16(logit));
  }
  return logits;
}

std::vector<float> ToyModel::Drafter(absl::Span<const TokenId> context) const {
  const TokenSeq text = {context.begin() + 1, context.end()};
  const std::vector<double> target = Logits(text, 0);
  const std::vector<double> own = Logits(text, 1);
  std::vector<float> row;
  for (size_t i = 0; i < target.size(); ++i) {
    double logit = 0.7 * target[i] + 0.6 * own[i];
    if (drafter_ == DrafterKind::kReversed) logit = -target[i];
    if (drafter_ == DrafterKind::kUniform) logit = 0;
    if (drafter_ == DrafterKind::kSame) logit = target[i];
    row.push_back(static_cast<float>(logit));
  }
  if (drafter_ == DrafterKind::kOneHot) {
    const auto best = std::max_element(row.begin(), row.end());
    for (auto it = row.begin(); it != row.end(); ++it) {
      if (it != best) *it = -std::numeric_limits<float>::infinity();
    }
  }
  return row;
}

}  // namespace outrider::testing
