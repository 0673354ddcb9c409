// SPDX-License-Identifier: Apache-2.0
#include "core/wire/row_code.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/bfloat16.h"
#include "core/wire/rice_code.h"

namespace outrider {
namespace {

constexpr int kParameterBits = 8;
constexpr int kExponentBits = 8;  // of bfloat16, which has no sign here
constexpr int kMantissaBits = 7;

absl::Status NoCode(absl::string_view bytes, uint32_t count,
                    absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(bytes.size(), " bytes are no code of ", count, " ", what));
}

// Whether so many values can be in there, each of which takes a bit at least:
// asked before memory is reserved for them.
bool MayHold(absl::string_view bytes, uint32_t count) {
  return count <= 8 * uint64_t{bytes.size()};
}

}  // namespace

std::string PackIds(absl::Span<const TokenId> ids) {
  if (ids.empty()) return {};
  std::vector<uint32_t> gaps;
  gaps.reserve(ids.size());
  TokenId next = 0;
  for (const TokenId id : ids) {
    gaps.push_back(static_cast<uint32_t>(id - next));
    next = id + 1;
  }
  const int parameter = BestRiceParameter(gaps);
  BitWriter writer;
  writer.Put(static_cast<uint32_t>(parameter), kParameterBits);
  for (const uint32_t gap : gaps) writer.PutRice(gap, parameter);
  return writer.Finish();
}

absl::StatusOr<std::vector<TokenId>> UnpackIds(absl::string_view bytes,
                                               uint32_t num_ids) {
  std::vector<TokenId> ids;
  if (num_ids == 0 && bytes.empty()) return ids;
  BitReader reader(bytes);
  const auto parameter = static_cast<int>(reader.Get(kParameterBits));
  if (!MayHold(bytes, num_ids) || parameter > kMaxRiceParameter) {
    return NoCode(bytes, num_ids, "ids");
  }
  ids.reserve(num_ids);
  uint64_t next = 0;
  for (uint32_t i = 0; i < num_ids; ++i) {
    const uint64_t id = next + reader.GetRice(parameter);
    if (id > std::numeric_limits<TokenId>::max()) {
      return NoCode(bytes, num_ids, "ids");
    }
    ids.push_back(static_cast<TokenId>(id));
    next = id + 1;
  }
  if (!reader.HasEndedWell()) return NoCode(bytes, num_ids, "ids");
  return ids;
}

bool FitBFloat16(absl::Span<const double> weights) {
  return std::all_of(weights.begin(), weights.end(), [](double weight) {
    return ToFloat(ToBFloat16(static_cast<float>(weight))) == weight;
  });
}

std::string PackBFloat16(absl::Span<const double> weights) {
  std::vector<uint32_t> exponents;
  std::vector<uint32_t> mantissas;
  exponents.reserve(weights.size());
  mantissas.reserve(weights.size());
  for (const double weight : weights) {
    const uint32_t bits = ToBFloat16(static_cast<float>(weight)).bits;
    exponents.push_back(bits >> kMantissaBits);
    mantissas.push_back(bits & ((1u << kMantissaBits) - 1));
  }
  const uint32_t least = *std::min_element(exponents.begin(), exponents.end());
  for (uint32_t& exponent : exponents) exponent -= least;
  const int parameter = BestRiceParameter(exponents);
  BitWriter writer;
  writer.Put(static_cast<uint32_t>(parameter), kParameterBits);
  writer.Put(least, kExponentBits);
  for (size_t i = 0; i < weights.size(); ++i) {
    writer.PutRice(exponents[i], parameter);
    writer.Put(mantissas[i], kMantissaBits);
  }
  return writer.Finish();
}

absl::StatusOr<std::vector<double>> UnpackBFloat16(absl::string_view bytes,
                                                   uint32_t num_weights) {
  BitReader reader(bytes);
  const auto parameter = static_cast<int>(reader.Get(kParameterBits));
  const uint32_t least = reader.Get(kExponentBits);
  if (!MayHold(bytes, num_weights) || parameter > kMaxRiceParameter) {
    return NoCode(bytes, num_weights, "bfloat16 weights");
  }
  std::vector<double> weights;
  weights.reserve(num_weights);
  for (uint32_t i = 0; i < num_weights; ++i) {
    const uint64_t exponent = uint64_t{least} + reader.GetRice(parameter);
    const uint32_t mantissa = reader.Get(kMantissaBits);
    if (exponent >= (1u << kExponentBits)) {
      return NoCode(bytes, num_weights, "bfloat16 weights");
    }
    const auto bits = static_cast<uint16_t>(exponent << kMantissaBits);
    weights.push_back(ToFloat({static_cast<uint16_t>(bits | mantissa)}));
  }
  if (!reader.HasEndedWell()) {
    return NoCode(bytes, num_weights, "bfloat16 weights");
  }
  return weights;
}

}  // namespace outrider
