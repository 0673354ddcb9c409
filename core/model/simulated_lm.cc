// SPDX-License-Identifier: Apache-2.0
#include "core/model/simulated_lm.h"

#include <sys/prctl.h>

#include <array>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/model/check_extension.h"

namespace outrider {
namespace {

// The tokens that a row makes possible, the most probable one first; at
// temperature 1 their probabilities are 0.64, 0.24, 0.09 and 0.03.
constexpr std::array<float, 4> kLogits = {0, -1, -2, -3};
// So low that no temperature up to 10 gives it any mass; finite, as a model's.
constexpr float kImpossible = -1e5F;
// Has as little mass, and still a rank.
constexpr float kNext = -5e4F;

constexpr int64_t kBlockBytes = kKvBlockLength * sizeof(uint64_t);

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
             .context_length = options_.context_length,
             .kv_block_bytes = kBlockBytes}),
      available_kv_bytes_(options_.kv_bytes),
      impossible_(static_cast<size_t>(options_.vocab_size), kImpossible) {
  OUTRIDER_CHECK(options_.vocab_size >= kMinVocabSize);
}

absl::Status SimulatedLm::AllocateKvBlocks(int num_blocks) {
  if (num_blocks * kBlockBytes > available_kv_bytes_) {
    return absl::ResourceExhaustedError("no memory for so many KV blocks");
  }
  available_kv_bytes_ -= num_blocks * kBlockBytes;
  hashes_.Allocate(num_blocks);
  return absl::OkStatus();
}

std::unique_ptr<PendingPass> SimulatedLm::Launch(
    absl::Span<const Extension> batch) {
  const Clock::time_point start = Clock::now();
  std::chrono::nanoseconds duration = options_.pass_time;
  PassResults results;
  results.reserve(batch.size());
  for (const Extension& extension : batch) {
    const absl::Status check = CheckExtension(extension, info_);
    if (!check.ok()) {
      results.push_back(check);
      continue;
    }
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
  return std::make_unique<PassThatRan>(std::move(results));
}

LogitRows SimulatedLm::ExtendOne(const Extension& extension) {
  if (extension.copied_block.has_value()) {
    hashes_.Copy(*extension.copied_block, CopyTarget(extension));
  }
  int position = extension.cached_length;
  uint64_t hash =
      position == 0 ? 0 : hashes_.Get(extension.blocks, position - 1);
  for (const TokenId token : extension.tokens) {
    hash = Mix(hash ^ (static_cast<uint64_t>(token) + 1));
    hashes_.Set(extension.blocks, position++, hash);
  }
  std::vector<float> values;
  values.reserve(static_cast<size_t>(extension.num_rows) * options_.vocab_size);
  for (int i = extension.num_rows; i > 0; --i) {
    AppendRow(hashes_.Get(extension.blocks, position - i), values);
  }
  return LogitRows::FromVector(std::move(values), options_.vocab_size);
}

void SimulatedLm::AppendRow(uint64_t context_hash,
                            std::vector<float>& values) const {
  const size_t row = values.size();
  values.insert(values.end(), impossible_.begin(), impossible_.end());
  const uint64_t first = Mix(context_hash ^ 1);
  const auto at = [&](uint64_t place) -> float& {
    // `first` alone is reduced: sums of 64 bits could wrap around.
    return values[row +
                  (first % options_.vocab_size + place) % options_.vocab_size];
  };
  // Even places are the target's, odd ones those of a draft that is wrong.
  const bool agrees = ToUnit(Mix(context_hash ^ 2)) < options_.acceptance;
  const bool hits = ToUnit(Mix(context_hash ^ 3)) < options_.outcome_hit;
  for (size_t i = 0; i < kLogits.size(); ++i) {
    if (agrees) {
      at(2 * i) = kLogits[i];
    } else if (hits) {
      at(2 * i) = kNext + kLogits[i];
    } else {
      at(2 * i + 1) = kLogits[i];
    }
  }
  // Where the target's tokens come next, one draft has all the mass: it is the
  // one that is refused, and nothing else comes between.
  if (!agrees && hits) at(1) = 0;
}

}  // namespace outrider
