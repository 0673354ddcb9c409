// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/adjust_logits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutant.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// Where in the row a token stands; negative where it does not.
using PlaceOf = absl::FunctionRef<ptrdiff_t(TokenId)>;

// How often each token of a row occurred.
class TokenCounts {
 public:
  TokenCounts(size_t row_size, PlaceOf place_of)
      : place_of_(place_of), counts_(row_size, 0) {}

  absl::Status Add(absl::Span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      const ptrdiff_t place = place_of_(token);
      if (place < 0) {
        return absl::InternalError(
            absl::StrCat("token ", token, " of the history is not in a row of ",
                         counts_.size(), " logits"));
      }
      ++counts_[place];
    }
    return absl::OkStatus();
  }

  int32_t operator[](size_t place) const { return counts_[place]; }

 private:
  const PlaceOf place_of_;
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

absl::Status AddBias(const std::vector<LogitBias>& entries, PlaceOf place_of,
                     std::vector<double>& values) {
  for (const LogitBias& entry : entries) {
    const ptrdiff_t place = place_of(entry.id);
    if (place < 0) {
      return absl::InternalError(absl::StrCat("logit_bias names token ",
                                              entry.id, ", but a row has ",
                                              values.size(), " logits"));
    }
    values[place] += entry.bias;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Adjust(absl::Span<const float> logits,
                                           PlaceOf place_of,
                                           const SamplingParams& params,
                                           const TokenHistory& history) {
  std::vector<double> values(logits.begin(), logits.end());
  OUTRIDER_RETURN_IF_ERROR(AddBias(params.logit_bias, place_of, values));

  const SplitHistory tokens = Split(history);
  if (params.repetition_penalty != 1) {
    const double penalty = params.repetition_penalty;
    TokenCounts seen(values.size(), place_of);
    OUTRIDER_RETURN_IF_ERROR(seen.Add(
        OUTRIDER_MUTANT(P4, tokens.prompt, absl::Span<const TokenId>())));
    OUTRIDER_RETURN_IF_ERROR(seen.Add(tokens.generated));
    OUTRIDER_RETURN_IF_ERROR(seen.Add(tokens.drafts));
    for (size_t i = 0; i < values.size(); ++i) {
      double& value = values[i];
      if (seen[i] > 0) value = value > 0 ? value / penalty : value * penalty;
    }
  }
  if (params.frequency_penalty != 0 || params.presence_penalty != 0) {
    TokenCounts generated(values.size(), place_of);
    OUTRIDER_RETURN_IF_ERROR(generated.Add(tokens.generated));
    OUTRIDER_RETURN_IF_ERROR(generated.Add(tokens.drafts));
    for (size_t i = 0; i < values.size(); ++i) {
      if (generated[i] == 0) continue;
      values[i] -=
          params.frequency_penalty * OUTRIDER_MUTANT(P5, generated[i], 1);
      values[i] -= params.presence_penalty;
    }
  }
  return values;
}

}  // namespace

bool AdjustsLogits(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0 || !params.logit_bias.empty();
}

absl::StatusOr<std::vector<double>> AdjustLogits(absl::Span<const float> logits,
                                                 const SamplingParams& params,
                                                 const TokenHistory& history) {
  const auto size = static_cast<TokenId>(logits.size());
  return Adjust(
      logits,
      [size](TokenId token) -> ptrdiff_t {
        return token >= 0 && token < size ? token : -1;
      },
      params, history);
}

std::vector<TokenId> AdjustedTokens(const SamplingParams& params,
                                    const TokenHistory& history) {
  std::vector<TokenId> tokens;
  const auto add = [&](absl::Span<const TokenId> some) {
    tokens.insert(tokens.end(), some.begin(), some.end());
  };
  for (const LogitBias& entry : params.logit_bias) tokens.push_back(entry.id);
  const SplitHistory split = Split(history);
  if (params.repetition_penalty != 1) add(split.prompt);
  if (params.repetition_penalty != 1 || params.presence_penalty != 0 ||
      params.frequency_penalty != 0) {
    add(split.generated);
    add(split.drafts);
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

absl::StatusOr<std::vector<double>> AdjustLogitsOf(
    absl::Span<const TokenId> tokens, absl::Span<const float> logits,
    const SamplingParams& params, const TokenHistory& history) {
  return Adjust(
      logits,
      [tokens](TokenId token) -> ptrdiff_t {
        const auto it = std::lower_bound(tokens.begin(), tokens.end(), token);
        return it != tokens.end() && *it == token ? it - tokens.begin() : -1;
      },
      params, history);
}

}  // namespace outrider
