// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/coins.h"

#include <array>
#include <cmath>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "core/base/check.h"
#include "core/sampling/philox.h"
#include "core/sampling/vector_math.h"

namespace outrider {
namespace {

// 52 bits and a half, as 53 and a half would round to 1.
double OpenUniformOf(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

}  // namespace

double Coins::Uniform(const CoinKey& key) const {
  const uint32_t purpose_and_generation =
      static_cast<uint32_t>(key.purpose) << 24 |
      static_cast<uint32_t>(key.generation >> 32 & 0xffffff);
  const auto words = Philox4x32(
      {0, static_cast<uint32_t>(key.position),
       static_cast<uint32_t>(key.generation), purpose_and_generation},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const uint64_t bits = static_cast<uint64_t>(words[1]) << 32 | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

bool Coins::Accept(const CoinKey& key, double p, double q) {
  return AcceptsAt(Uniform(key), p, q);
}

size_t Coins::Categorical(const CoinKey& key,
                          absl::Span<const double> weights) {
  return ChooseByWeight(Uniform(key), weights);
}

void Coins::NoiseBits(uint64_t position, TokenId first,
                      absl::Span<uint64_t> bits) const {
  PhiloxRun({static_cast<uint32_t>(first) / 2, static_cast<uint32_t>(position),
             0, static_cast<uint32_t>(Purpose::kGumbel) << 24},
            {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)},
            bits);
}

double Coins::OpenUniform(uint64_t position, TokenId token) const {
  std::array<uint64_t, 2> bits;  // a block holds the noise of two neighbours
  NoiseBits(position, token - token % 2, absl::MakeSpan(bits));
  return OpenUniformOf(bits[token % 2]);
}

size_t Coins::Race(uint64_t position, absl::Span<const TokenId> ids,
                   absl::Span<const double> weights) {
  OUTRIDER_CHECK(ids.size() == weights.size());
  std::array<uint64_t, 512> bits;  // the noise of tokens from `first` on
  size_t size = 0;
  TokenId first = 0;
  double best = std::numeric_limits<double>::infinity();
  size_t winner = weights.size();
  for (size_t i = 0; i < weights.size(); ++i) {
    OUTRIDER_CHECK(weights[i] >= 0 && std::isfinite(weights[i]))
        << "weight " << weights[i];
    if (weights[i] <= 0) continue;
    if (ids[i] < first || ids[i] - first >= static_cast<TokenId>(size)) {
      // The array is filled whole where at least half of it will be used.
      const size_t half = i + bits.size() / 2;
      const bool is_dense =
          half < ids.size() &&
          ids[half] - ids[i] < static_cast<TokenId>(bits.size());
      first = ids[i] - ids[i] % 2;
      size = is_dense ? bits.size() : 2;
      NoiseBits(position, first, absl::MakeSpan(bits).first(size));
    }
    const double uniform = OpenUniformOf(bits[ids[i] - first]);
    // -log(u) > 1 - u, which is exact: nearly all lose without a logarithm.
    if (winner < weights.size() && 1 - uniform >= best * weights[i]) continue;
    const double time = -std::log(uniform) / weights[i];
    if (winner == weights.size() || time < best) {
      best = time;
      winner = i;
    }
  }
  OUTRIDER_CHECK(winner < weights.size()) << "no weight is positive";
  return winner;
}

bool AcceptsAt(double uniform, double p, double q) {
  OUTRIDER_CHECK(p >= 0 && q > 0) << "p " << p << ", q " << q;  // NaN fails too
  return p >= q || uniform * q < p;
}

size_t ChooseByWeight(double uniform, absl::Span<const double> weights) {
  // First in which block, then which of it: the sums of blocks are vector code,
  // where a running sum over the row waits for each addition.
  constexpr size_t kBlock = 256;
  absl::InlinedVector<double, 8> sums;  // of drafts' rows; others have more
  sums.reserve(weights.size() / kBlock + 1);
  double total = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kBlock) {
    sums.push_back(Sum(weights.subspan(begin, kBlock)));
    total += sums.back();
  }
  OUTRIDER_CHECK(std::isfinite(total)) << "the weights sum to " << total;
  OUTRIDER_CHECK(total > 0) << "no weight is positive";
  const double threshold = uniform * total;

  // Rounding may leave the whole sum at the threshold: then the last that is
  // possible takes it, among blocks as among weights.
  double before = 0;
  double running = 0;
  size_t chosen = 0;
  for (size_t block = 0; block < sums.size(); ++block) {
    if (sums[block] <= 0) continue;
    chosen = block;
    before = running;
    running += sums[block];
    if (running > threshold) break;
  }
  size_t last_possible = 0;
  for (size_t i = 0; i < weights.subspan(chosen * kBlock, kBlock).size(); ++i) {
    const double weight = weights[chosen * kBlock + i];
    if (weight <= 0) continue;
    before += weight;
    last_possible = chosen * kBlock + i;
    if (before > threshold) break;
  }
  return last_possible;
}

}  // namespace outrider
