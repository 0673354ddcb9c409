// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/fault.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"

namespace outrider::testing {
namespace {

using std::chrono::microseconds;

constexpr int kNumKinds = static_cast<int>(Fault::Kind::kHangUp) + 1;
constexpr std::array<const char*, kNumKinds> kNames = {
    "drop",  "duplicate", "delay", "cross",       "echo",   "crash",
    "pause", "deaf",      "dumb",  "refuse",      "evict",  "nan row",
    "drain", "replace",   "lie",   "stand still", "hang up"};
// How often each is drawn: messages have most of the faults.
constexpr std::array<int, kNumKinds> kWeights = {8, 8, 8, 2, 1, 4, 2, 1, 2,
                                                 2, 3, 2, 4, 2, 2, 1, 3};

// A run has some hundred messages and takes some hundred milliseconds.
constexpr int64_t kMessages = 600;
constexpr int64_t kMicroseconds = 500'000;

// Each decade as often.
microseconds Draw(double least, double most, std::mt19937_64& random) {
  std::uniform_real_distribution<double> decades(std::log10(least),
                                                 std::log10(most));
  return microseconds(static_cast<int64_t>(std::pow(10, decades(random))));
}

// What it takes for an old opening to revive a session: the node forgets, is
// opened with drafts that are then refused, forgets once more, and gets the
// opening again before the next call comes.
void AddRevivals(int num_nodes, std::mt19937_64& random,
                 std::vector<Fault>& faults) {
  faults.push_back(
      {.kind = Fault::Kind::kEcho, .time = Draw(4'000, 30'000, random)});
  for (int i = 0; i < 6; ++i) {
    const int node = 1 + static_cast<int>(random() % (num_nodes - 1));
    const auto first = static_cast<int64_t>(20'000 + random() % 200'000);
    const auto second = first + Draw(4'000, 40'000, random).count();
    faults.push_back({Fault::Kind::kCrash, node, first, microseconds(100)});
    faults.push_back({Fault::Kind::kCrash, node, second, microseconds(100)});
  }
}

// What a move may meet: the node that it goes to breaks, refuses, drains or
// gives rows that are none, and the client leaves.
void AddMoves(int num_nodes, std::mt19937_64& random,
              std::vector<Fault>& faults) {
  const auto begin = static_cast<int64_t>(20'000 + random() % 200'000);
  faults.push_back({.kind = Fault::Kind::kCrash,
                    .node = static_cast<int>(random() % num_nodes),
                    .at = begin,
                    .time = microseconds(1'000'000)});
  faults.push_back({.kind = Fault::Kind::kDrain,
                    .node = static_cast<int>(random() % num_nodes),
                    .at = begin + Draw(1'000, 60'000, random).count(),
                    .time = microseconds(100'000)});
  constexpr Fault::Kind kMet[] = {Fault::Kind::kNanRow, Fault::Kind::kHangUp,
                                  Fault::Kind::kRefuse, Fault::Kind::kNanRow};
  for (const Fault::Kind kind : kMet) {
    faults.push_back({.kind = kind,
                      .node = static_cast<int>(random() % num_nodes),
                      .at = begin + Draw(4'000, 60'000, random).count(),
                      .time = microseconds(5'000 + random() % 2)});
  }
}

}  // namespace

std::string Fault::ToString() const {
  std::string text = kNames[static_cast<size_t>(kind)];
  if (is_of_message()) {
    absl::StrAppend(&text, " message ", at);
  } else {
    absl::StrAppend(&text, " node ", node, " at ", at, " us");
  }
  return absl::StrCat(text, " for ", time.count(), " us");
}

std::vector<Fault> DrawFaults(uint64_t seed, int num_nodes, int multiple) {
  std::mt19937_64 random(HashOf(seed, 1));
  std::discrete_distribution<int> kinds(kWeights.begin(), kWeights.end());
  std::vector<Fault> faults(random() % 16 * multiple);
  for (Fault& fault : faults) {
    fault.kind = static_cast<Fault::Kind>(kinds(random));
    fault.node = static_cast<int>(random() % num_nodes);
    fault.at = static_cast<int64_t>(
        random() % (fault.is_of_message() ? kMessages : kMicroseconds));
    fault.time = Draw(100, 40'000'000, random);  // up to more than a lease
  }
  for (int i = 0; i < multiple; ++i) {
    if (seed % 3 == 0) AddRevivals(num_nodes, random, faults);
    if (seed % 2 == 1) AddMoves(num_nodes, random, faults);
  }
  std::sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
    return std::pair(a.is_of_message(), a.at) <
           std::pair(b.is_of_message(), b.at);
  });
  return faults;
}

std::string ToString(absl::Span<const Fault> faults) {
  std::string text;
  for (const Fault& fault : faults) {
    absl::StrAppend(&text, "  ", fault.ToString(), "\n");
  }
  return text;
}

uint64_t HashOf(uint64_t seed, uint64_t number) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + number;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace outrider::testing
