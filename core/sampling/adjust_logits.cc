// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/adjust_logits.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// How often each token of a vocabulary occurred.
class TokenCounts {
 public:
  explicit TokenCounts(size_t vocab_size) : counts_(vocab_size, 0) {}

  absl::Status Add(absl::Span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      if (token < 0 || static_cast<size_t>(token) >= counts_.size()) {
        return absl::InternalError(
            absl::StrCat("token ", token, " of the history is not in a row of ",
                         counts_.size(), " logits"));
      }
      ++counts_[token];
    }
    return absl::OkStatus();
  }

  int32_t operator[](size_t token) const { return counts_[token]; }

 private:
  std::vector<int32_t> counts_;
};

struct SplitHistory {
  absl::Span<const TokenId> prompt;
  absl::Span<const TokenId> generated;
  absl::Span<const TokenId> drafts;
};

SplitHistory Split(const TokenHistory& history) {
  const size_t prompt_length =
      std::min(static_cast<size_t>(
                   OUTRIDER_MUTANT(P2, std::max(history.prompt_length, 0), 0)),
               history.committed.size());
  return {.prompt = history.committed.first(prompt_length),
          .generated = history.committed.subspan(prompt_length),
          .drafts =
              OUTRIDER_MUTANT(P1, history.drafts, absl::Span<const TokenId>())};
}

absl::Status AddBias(const std::vector<LogitBias>& entries,
                     std::vector<double>& values) {
  for (const LogitBias& entry : entries) {
    if (entry.id < 0 || static_cast<size_t>(entry.id) >= values.size()) {
      return absl::InternalError(absl::StrCat("logit_bias names token ",
                                              entry.id, ", but a row has ",
                                              values.size(), " logits"));
    }
    values[entry.id] += entry.bias;
  }
  return absl::OkStatus();
}

}  // namespace

bool AdjustsLogits(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0 || !params.logit_bias.empty();
}

absl::StatusOr<std::vector<double>> AdjustLogits(absl::Span<const float> logits,
                                                 const SamplingParams& params,
                                                 const TokenHistory& history) {
  std::vector<double> values(logits.begin(), logits.end());
  OUTRIDER_RETURN_IF_ERROR(AddBias(params.logit_bias, values));

  const SplitHistory tokens = Split(history);
  if (params.repetition_penalty != 1) {
    const double penalty = params.repetition_penalty;
    TokenCounts seen(values.size());
    OUTRIDER_RETURN_IF_ERROR(seen.Add(
        OUTRIDER_MUTANT(P4, tokens.prompt, absl::Span<const TokenId>())));
    OUTRIDER_RETURN_IF_ERROR(seen.Add(tokens.generated));
    OUTRIDER_RETURN_IF_ERROR(seen.Add(tokens.drafts));
    for (size_t id = 0; id < values.size(); ++id) {
      double& value = values[id];
      if (seen[id] > 0) value = value > 0 ? value / penalty : value * penalty;
    }
  }
  if (params.frequency_penalty != 0 || params.presence_penalty != 0) {
    TokenCounts generated(values.size());
    OUTRIDER_RETURN_IF_ERROR(generated.Add(tokens.generated));
    OUTRIDER_RETURN_IF_ERROR(generated.Add(tokens.drafts));
    for (size_t id = 0; id < values.size(); ++id) {
      if (generated[id] == 0) continue;
      values[id] -=
          params.frequency_penalty * OUTRIDER_MUTANT(P5, generated[id], 1);
      values[id] -= params.presence_penalty;
    }
  }
  return values;
}

}  // namespace outrider
