// SPDX-License-Identifier: Apache-2.0
// What a decoder's layers cost on this CPU. Each iteration runs, one after the
// other, the pass that is measured, the same pass for one row, and a plain read
// of as many bytes, so that a busy machine slows all three; the counters are
// made of their medians:
//   read_share   time of the read / time of the pass: 1 is the memory's speed
//   vs_one_row   time of the pass / time of the pass for one row
//   cold_us      time of the pass when the caches hold other memory, as they do
//                where weights were read since the layer's last turn
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/kernels/attention.h"
#include "core/kernels/linear.h"
#include "core/kernels/random_values.h"

namespace outrider::kernels {
namespace {

struct Model {
  int hidden;
  int num_layers;
  int num_heads;
  int num_kv_heads;
  int ffn;
  int vocab_size;
};
constexpr int kHeadDim = 64;
constexpr Model kTarget = {384, 10, 6, 2, 1024, 4096};  // 17.3 M parameters
constexpr Model kDraft = {256, 2, 4, 2, 768, 4096};     // 2.6 M parameters

// All linear layers of a model, in the order of a forward pass.
class LinearStack {
 public:
  LinearStack(const Model& model, ElementType type) : type_(type) {
    const int q = model.num_heads * kHeadDim;
    const int kv = model.num_kv_heads * kHeadDim;
    for (int layer = 0; layer < model.num_layers; ++layer) {
      Add(q + 2 * kv, model.hidden);
      Add(model.hidden, q);
      Add(2 * model.ffn, model.hidden);
      Add(model.hidden, model.ffn);
    }
    Add(model.vocab_size, model.hidden);
    x_ = RandomValues(static_cast<size_t>(kMaxRows) * largest_in_, 3);
    y_.resize(static_cast<size_t>(kMaxRows) * largest_out_);
  }

  static constexpr int kMaxRows = 512;

  void Run(int num_rows, Level level) {
    for (const PackedWeight& weight : weights_) {
      Linear({.x = x_.data(),
              .num_rows = num_rows,
              .weight = &weight,
              .y = y_.data()},
             level);
    }
    benchmark::DoNotOptimize(y_.data());
    benchmark::ClobberMemory();
  }

  // Sums all weights as integers, as fast as the memory allows: eight chains,
  // and prefetching as Linear has it.
  void Read() const {
    using Words = uint64_t __attribute__((vector_size(16)));
    Words sums[8] = {};
    for (const PackedWeight& weight : weights_) {
      const auto* words = static_cast<const Words*>(weight.data());
      for (size_t i = 0; i + 8 <= weight.num_bytes() / sizeof(Words); i += 8) {
        __builtin_prefetch(words + i + 1024);
        __builtin_prefetch(words + i + 1028);
        for (int j = 0; j < 8; ++j) sums[j] += words[i + j];
      }
    }
    benchmark::DoNotOptimize(sums);
  }

  size_t num_bytes() const {
    size_t sum = 0;
    for (const PackedWeight& weight : weights_) sum += weight.num_bytes();
    return sum;
  }

  double num_multiplications() const {
    double sum = 0;
    for (const PackedWeight& weight : weights_) {
      sum += double(weight.out()) * weight.in();
    }
    return sum;
  }

 private:
  void Add(int out, int in) {
    largest_in_ = std::max(largest_in_, in);
    largest_out_ = std::max(largest_out_, out);
    const auto values = RandomValues(static_cast<size_t>(out) * in, 5);
    const auto rounded = ToBFloat16(values);
    const ConstElements elements = type_ == ElementType::kBFloat16
                                       ? ConstElements(rounded.data())
                                       : ConstElements(values.data());
    weights_.emplace_back(std::vector<WeightRows>{{elements, out}}, in);
  }

  ElementType type_;
  int largest_in_ = 0;
  int largest_out_ = 0;
  std::vector<PackedWeight> weights_;
  std::vector<float> x_;
  std::vector<float> y_;
};

template <class Body>
double Seconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void BM_Linears(benchmark::State& state, const Model& model, ElementType type,
                Level level) {
  const int num_rows = static_cast<int>(state.range(0));
  LinearStack stack(model, type);
  std::vector<double> passes, singles, reads;
  for (auto _ : state) {
    reads.push_back(Seconds([&] { stack.Read(); }));
    singles.push_back(Seconds([&] { stack.Run(1, level); }));
    passes.push_back(Seconds([&] { stack.Run(num_rows, level); }));
    state.SetIterationTime(passes.back());
  }
  const double pass = Median(passes);
  state.counters["median_ms"] = 1e3 * pass;
  state.counters["GB/s"] = 1e-9 * static_cast<double>(stack.num_bytes()) / pass;
  state.counters["read_share"] = Median(reads) / pass;
  state.counters["vs_one_row"] = pass / Median(singles);
  state.counters["GFLOP/s"] =
      2e-9 * stack.num_multiplications() * num_rows / pass;
}

// One layer of the target model; arguments: rows, keys.
// Reads more memory than the caches hold.
void EvictCaches() {
  static const std::vector<uint64_t> other(size_t{40} << 17, 1);
  uint64_t sum = 0;
  for (const uint64_t word : other) sum += word;
  benchmark::DoNotOptimize(sum);
}

void BM_Attention(benchmark::State& state, ElementType type, Level level) {
  const int num_rows = static_cast<int>(state.range(0));
  const int length = static_cast<int>(state.range(1));
  const int row_size = kTarget.num_kv_heads * kHeadDim;
  const int out_size = kTarget.num_heads * kHeadDim;
  std::vector<KvBlockId> table;
  for (int i = NumKvBlocks(length); i > 0; --i) table.push_back(i - 1);
  const auto cache = RandomValues(table.size() * kKvBlockLength * row_size, 3);
  const auto rounded = ToBFloat16(cache);
  const auto more = cache;  // values must not find the keys' cache lines
  const auto more_rounded = rounded;
  const auto queries =
      RandomValues(static_cast<size_t>(num_rows) * out_size, 5);
  const bool is_rounded = type == ElementType::kBFloat16;
  std::vector<float> out(queries.size());
  KvSegment segment = {.blocks = table.data()};
  AttentionArgs args = {.segments = absl::MakeConstSpan(&segment, 1),
                        .queries = queries.data(),
                        .query_stride = out_size,
                        .keys = is_rounded ? ConstElements(rounded.data())
                                           : ConstElements(cache.data()),
                        .values = is_rounded
                                      ? ConstElements(more_rounded.data())
                                      : ConstElements(more.data()),
                        .num_heads = kTarget.num_heads,
                        .num_kv_heads = kTarget.num_kv_heads,
                        .head_dim = kHeadDim,
                        .scale = 0.125f,
                        .out = out.data()};
  const auto run = [&](int rows) {
    segment.num_rows = rows;
    segment.first_position = length - rows;
    Attention(args, level);
    benchmark::ClobberMemory();
  };
  std::vector<double> passes, singles, cold;
  for (auto _ : state) {
    EvictCaches();
    cold.push_back(Seconds([&] { run(num_rows); }));
    singles.push_back(Seconds([&] { run(1); }));
    passes.push_back(Seconds([&] { run(num_rows); }));
    state.SetIterationTime(passes.back());
  }
  state.counters["median_us"] = 1e6 * Median(passes);
  state.counters["cold_us"] = 1e6 * Median(cold);
  state.counters["vs_one_row"] = Median(passes) / Median(singles);
}

void RegisterAll() {
  for (const Level level : SupportedLevels()) {
    for (const ElementType type :
         {ElementType::kBFloat16, ElementType::kFloat32}) {
      const std::string suffix =
          std::string(type == ElementType::kBFloat16 ? "/bfloat16/"
                                                     : "/float32/") +
          LevelName(level);
      for (const Model* model : {&kTarget, &kDraft}) {
        const std::string name =
            model == &kTarget ? "BM_TargetLinears" : "BM_DraftLinears";
        benchmark::RegisterBenchmark((name + suffix).c_str(), BM_Linears,
                                     *model, type, level)
            ->DenseRange(1, 9)
            ->Arg(LinearStack::kMaxRows)
            ->UseManualTime();
      }
      benchmark::RegisterBenchmark(("BM_Attention" + suffix).c_str(),
                                   BM_Attention, type, level)
          ->ArgsProduct({{1, 5, 9}, {128, 512, 2048}})
          ->UseManualTime();
    }
  }
}

}  // namespace
}  // namespace outrider::kernels

int main(int argc, char** argv) {
  outrider::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
