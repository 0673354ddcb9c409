// SPDX-License-Identifier: Apache-2.0
// What a row of logits costs after the model: on the verifier (processing, the
// probabilities on a draft's support of 32, the tail and a token of it) and on
// the drafter (processing, the cut, a token); and what is made of a GPU's
// answer of a row that is cut, whose 1024 greatest logits it tells. Each
// iteration first does the same in the plain way, std::exp and a sort of the
// whole row, or of those 1024, so that a busy machine slows both:
//   median_us      ours
//   vs_textbook    the plain way's median / ours
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/base/check.h"
#include "core/base/freed_memory.h"
#include "core/base/top_question.h"
#include "core/sampling/coins.h"
#include "core/sampling/coupled.h"
#include "core/sampling/cut.h"
#include "core/sampling/process.h"
#include "core/sampling/target_row.h"

namespace outrider {
namespace {

// Tops and tails as a language model has them: normal, and a few that lead.
std::vector<float> Logits(int vocab_size, uint32_t seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal(0, 2.5);
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  for (float& logit : logits) logit = normal(bits);
  for (int i = 0; i < 8; ++i) {
    logits[bits() % logits.size()] = 12 + normal(bits);
  }
  return logits;
}

TokenId TextbookDraw(absl::Span<const float> logits,
                     const SamplingParams& params, double uniform) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (params.top_k > 0 || params.top_p < 1) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int a, int b) { return logits[a] > logits[b]; });
  }
  if (params.top_k > 0) ids.resize(static_cast<size_t>(params.top_k));
  const double maximum = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(ids.size());
  double total = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    p[i] = std::exp((logits[ids[i]] - maximum) / params.temperature);
    total += p[i];
  }
  if (params.top_p < 1) {
    double sum = 0;
    size_t kept = 0;
    while (sum < params.top_p * total) sum += p[kept++];
    p.resize(kept);
    total = sum;
  }
  double running = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    running += p[i];
    if (running > uniform * total) return ids[i];
  }
  return ids[p.size() - 1];
}

template <class Body>
double Microseconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Distribution MustProcess(absl::Span<const float> logits,
                         const SamplingParams& params) {
  auto row = Process(logits, params, {});
  OUTRIDER_CHECK(row.ok()) << row.status();
  return *std::move(row);
}

using RowWork = TokenId (*)(absl::Span<const float>, const SamplingParams&,
                            Coins&, uint64_t position);

TokenId VerifierRow(absl::Span<const float> logits,
                    const SamplingParams& params, Coins& coins,
                    uint64_t position) {
  std::vector<TokenId> support;
  for (TokenId i = 0; i < 32; ++i) support.push_back(i * 100 + 7);
  TargetRow row = TargetRow::FromDense(MustProcess(logits, params), support,
                                       position, coins);
  row.Draw();
  return row.tail_mass() > 0 ? row.drawn_token() : support[0];
}

TokenId CoupledVerifierRow(absl::Span<const float> logits,
                           const SamplingParams& params, Coins& coins,
                           uint64_t position) {
  return DrawCoupled(MustProcess(logits, params), position, coins);
}

TokenId DrafterRow(absl::Span<const float> logits, const SamplingParams& params,
                   Coins& coins, uint64_t position) {
  const Distribution q =
      KeepTop(MustProcess(logits, params), 1024, 0.98).RoundedToBFloat16();
  return q
      .support()[coins.Categorical({Purpose::kDraft, position}, q.weights())];
}

void BM_Row(benchmark::State& state, RowWork work,
            const SamplingParams& params) {
  const std::vector<float> logits =
      Logits(static_cast<int>(state.range(0)), /*seed=*/1);
  Coins coins(7);
  uint64_t position = 0;
  std::vector<double> ours, textbook;
  for (auto _ : state) {
    ++position;
    textbook.push_back(Microseconds([&] {
      const double uniform = coins.Uniform({Purpose::kTail, position});
      benchmark::DoNotOptimize(TextbookDraw(logits, params, uniform));
    }));
    ours.push_back(Microseconds([&] {
      benchmark::DoNotOptimize(work(logits, params, coins, position));
    }));
    state.SetIterationTime(1e-6 * ours.back());
  }
  state.counters["median_us"] = Median(ours);
  state.counters["vs_textbook"] = Median(textbook) / Median(ours);
}

// The greatest logits of a row whose mass is among them, and what others weigh.
TopAnswer AnswerOf(int vocab_size) {
  std::vector<float> logits = Logits(vocab_size, /*seed=*/1);
  logits[logits.size() / 2] = 24;
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::nth_element(ids.begin(), ids.begin() + kMaxTopLogits, ids.end(),
                   [&](int a, int b) { return logits[a] > logits[b]; });
  std::sort(ids.begin(), ids.begin() + kMaxTopLogits);
  TopAnswer answer;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i >= kMaxTopLogits) {
      answer.rest += std::exp(logits[ids[i]] - 24);
      continue;
    }
    answer.ids.push_back(ids[i]);
    answer.logits.push_back(logits[ids[i]]);
  }
  return answer;
}

void BM_Answer(benchmark::State& state, const SamplingParams& params) {
  const TopAnswer answer = AnswerOf(static_cast<int>(state.range(0)));
  std::vector<double> ours, textbook;
  for (auto _ : state) {
    textbook.push_back(Microseconds([&] {
      benchmark::DoNotOptimize(TextbookDraw(answer.logits, params, 0.5));
    }));
    ours.push_back(Microseconds(
        [&] { OUTRIDER_CHECK(ProcessTop(answer, params, {}).has_value()); }));
    state.SetIterationTime(1e-6 * ours.back());
  }
  state.counters["median_us"] = Median(ours);
  state.counters["vs_textbook"] = Median(textbook) / Median(ours);
}

void RegisterAll() {
  const std::pair<const char*, SamplingParams> settings[] = {
      {"temperature_0.8", {.temperature = 0.8}},
      {"top_k_50", {.temperature = 0.8, .top_k = 50}},
      {"top_p_0.95", {.temperature = 0.8, .top_p = 0.95}},
  };
  const std::pair<const char*, RowWork> works[] = {
      {"verifier", VerifierRow},
      {"verifier_coupled", CoupledVerifierRow},
      {"drafter", DrafterRow},
  };
  for (const auto& [work_name, work] : works) {
    for (const auto& [name, params] : settings) {
      const std::string label = std::string(work_name) + "/" + name;
      benchmark::RegisterBenchmark(label.c_str(), BM_Row, work, params)
          ->Arg(4096)
          ->Arg(32000)
          ->Arg(128256)
          ->UseManualTime();
    }
  }
  for (const auto& [name, params] : settings) {
    if (params.top_p == 1) continue;
    const std::string label = std::string("answer/") + name;
    benchmark::RegisterBenchmark(label.c_str(), BM_Answer, params)
        ->Arg(128256)
        ->UseManualTime();
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  outrider::KeepFreedMemory();  // as the nodes do
  outrider::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
