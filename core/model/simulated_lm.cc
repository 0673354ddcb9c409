// SPDX-License-Identifier: Apache-2.0
#include "core/model/simulated_lm.h"

#include <sys/prctl.h>

#include <array>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider {
namespace {

// The tokens that a row makes possible, the most probable one first; at
// temperature 1 their probabilities are 0.64, 0.24, 0.09 and 0.03.
constexpr std::array<float, 4> kLogits = {0, -1, -2, -3};
// So low that no temperature up to 10 gives it any mass; finite, as a model's.
constexpr float kImpossible = -1e5F;

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double ToUnit(uint64_t x) {
  return std::ldexp(static_cast<double>(x >> 11), -53);
}

}  // namespace

SimulatedLm::SimulatedLm(Options options)
    : options_(std::move(options)),
      info_({.name = options_.name,
             .weights_hash = options_.name,
             .dtype = "none",
             .device = "simulated",
             .numerics = "simulated",
             .vocab_size = options_.vocab_size,
             .context_length = options_.context_length}) {
  OUTRIDER_CHECK(options_.vocab_size >= kMinVocabSize);
}

std::vector<absl::StatusOr<LogitRows>> SimulatedLm::Extend(
    absl::Span<const Extension> batch) {
  const Clock::time_point start = Clock::now();
  std::chrono::nanoseconds duration = options_.pass_time;
  std::vector<absl::StatusOr<LogitRows>> results;
  results.reserve(batch.size());
  for (const Extension& extension : batch) {
    duration += options_.row_time * extension.tokens.size();
    results.push_back(ExtendOne(extension));
  }
  // What making the rows took is part of the time.
  if (options_.sleep_until) {
    options_.sleep_until(start + duration);
  } else {
    // Whatever thread this is: by default the kernel may be 50 us late.
    prctl(PR_SET_TIMERSLACK, 1000UL);
    std::this_thread::sleep_until(start + duration);
  }
  return results;
}

absl::Status SimulatedLm::Check(const Extension& extension,
                                int cached_length) const {
  const int num_tokens = static_cast<int>(extension.tokens.size());
  if (num_tokens < 1 || extension.num_rows > num_tokens ||
      extension.keep_length < 0 || extension.keep_length > cached_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keep ", extension.keep_length, " of ", cached_length, ", append ",
        num_tokens, ", return ", extension.num_rows, " rows"));
  }
  if (extension.keep_length + num_tokens > options_.context_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        extension.keep_length + num_tokens,
        " tokens are beyond the context of ", options_.context_length));
  }
  for (const TokenId token : extension.tokens) {
    if (token < 0 || token >= options_.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is not in the vocabulary of ",
                       options_.vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LogitRows> SimulatedLm::ExtendOne(const Extension& extension) {
  const auto it = caches_.find(extension.session);
  const int cached_length =
      it == caches_.end() ? 0 : static_cast<int>(it->second.size());
  if (absl::Status status = Check(extension, cached_length); !status.ok()) {
    return status;
  }
  Cache& cache = caches_[extension.session];
  cache.resize(extension.keep_length);
  for (const TokenId token : extension.tokens) {
    const uint64_t before = cache.empty() ? 0 : cache.back();
    cache.push_back(Mix(before ^ (static_cast<uint64_t>(token) + 1)));
  }
  std::vector<float> values;
  values.reserve(static_cast<size_t>(extension.num_rows) * options_.vocab_size);
  for (int i = extension.num_rows; i > 0; --i) {
    AppendRow(cache[cache.size() - i], values);
  }
  return LogitRows::FromVector(std::move(values), options_.vocab_size);
}

void SimulatedLm::AppendRow(uint64_t context_hash,
                            std::vector<float>& values) const {
  const size_t row = values.size();
  values.resize(row + options_.vocab_size, kImpossible);
  const uint64_t first = Mix(context_hash ^ 1);
  // Even places are the target's, odd ones those of a draft that is wrong.
  const bool agrees = ToUnit(Mix(context_hash ^ 2)) < options_.acceptance;
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const uint64_t place = 2 * i + (agrees ? 0 : 1);
    // `first` alone is reduced: sums of 64 bits could wrap around.
    values[row + (first % options_.vocab_size + place) % options_.vocab_size] =
        kLogits[i];
  }
}

}  // namespace outrider
