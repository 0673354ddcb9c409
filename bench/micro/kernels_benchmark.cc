// SPDX-License-Identifier: Apache-2.0
// What a decoder's pass costs on this CPU: for 1 to 64 rows, on one thread and
// on several, at each level of the kernels. Each turn measures, one after the
// other, a plain read of all weights and every pass, and the same where each
// weight has memory of its own from the heap, in pages of 4 KiB where the first
// line says [madvise]; so a busy machine slows them all. Printed are the
// medians over the turns, and their ratios. Where others load the machine a low
// --percentile shows what lies beneath.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/available_cores.h"
#include "core/base/flag_checks.h"
#include "core/kernels/activation.h"
#include "core/kernels/attention.h"
#include "core/kernels/choose_level.h"
#include "core/kernels/linear.h"
#include "core/kernels/norm.h"
#include "core/kernels/random_values.h"
#include "core/kernels/rope.h"
#include "core/kernels/weight_memory.h"

namespace outrider::kernels {
namespace {

struct Shape {
  const char* name = "";
  int hidden = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int ffn = 0;
  int vocab_size = 0;

  int kv_size() const { return num_kv_heads * kHeadDim; }
  int q_size() const { return num_heads * kHeadDim; }
  int qkv_size() const { return q_size() + 2 * kv_size(); }

  static constexpr int kHeadDim = 64;
};
constexpr Shape kShapes[] = {
    {"demo-draft", 256, 2, 4, 2, 768, 4096},
    {"demo-target", 384, 10, 6, 2, 1024, 4096},
    {"360M", 960, 32, 15, 5, 2560, 49152},
};
constexpr int kRows[] = {1, 2, 4, 5, 8, 9, 16, 32, 64};
constexpr int kMostRows = 64;

struct Flags {
  std::string shape = "demo-target";
  std::string dtype = "bfloat16";
  std::vector<std::string> levels = {};
  int num_threads = AvailableCores();
  int num_keys = 256;
  int num_turns = 9;
  int percentile = 50;
};

// Seconds that a pass spends in its parts.
enum Part { kLinears, kAttention, kRest, kNumParts };
using Times = std::array<double, kNumParts>;

double Total(const Times& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

// A model of the Llama family with random weights in `memory`, or on the heap
// where that is null, and the last positions of one session that has
// `num_keys`.
class Decoder {
 public:
  Decoder(const Shape& shape, ElementType type, int num_keys,
          WeightMemory* memory)
      : shape_(shape),
        type_(type),
        num_keys_(num_keys),
        memory_(memory),
        values_(RandomValues(kNumValues, 3)),
        rounded_(ToBFloat16(values_)),
        norm_(shape.hidden, 1.0f) {
    for (int layer = 0; layer < shape.num_layers; ++layer) {
      Add(shape.qkv_size(), shape.hidden);
      Add(shape.hidden, shape.q_size());
      Add(2 * shape.ffn, shape.hidden);
      Add(shape.hidden, shape.ffn);
    }
    Add(shape.vocab_size, shape.hidden);
    const size_t num_positions = NumKvBlocks(num_keys) * kKvBlockLength;
    angles_.assign(num_positions * Shape::kHeadDim / 2, 0.5f);
    blocks_.resize(NumKvBlocks(num_keys));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    kv_.resize(2 * shape.num_layers * num_positions * shape.kv_size());
    x_ = RandomValues(static_cast<size_t>(kMostRows) * shape.hidden, 5);
    normed_.resize(x_.size());
    qkv_.resize(static_cast<size_t>(kMostRows) * shape.qkv_size());
    attended_.resize(static_cast<size_t>(kMostRows) * shape.q_size());
    gate_up_.resize(static_cast<size_t>(kMostRows) * 2 * shape.ffn);
    hidden_.resize(static_cast<size_t>(kMostRows) * shape.ffn);
    logits_.resize(static_cast<size_t>(kMostRows) * shape.vocab_size);
  }

  size_t num_bytes() const {
    size_t sum = 0;
    for (const PackedWeight& weight : weights_) sum += weight.num_bytes();
    return sum;
  }

  // Sums all weights as integers, as fast as the memory allows.
  double Read(ThreadPool& pool) const {
    const Clock::time_point start = Clock::now();
    const int num_parts = 8 * pool.num_threads();
    pool.Run(num_parts, [&](int part) {
      for (const PackedWeight& weight : weights_) {
        const size_t num_lines = weight.num_bytes() / sizeof(Line);
        ReadLines(static_cast<const Line*>(weight.data()),
                  num_lines * part / num_parts,
                  num_lines * (part + 1) / num_parts);
      }
    });
    return Since(start);
  }

  Times Pass(int num_rows, const Execution& execution) {
    Times times = {};
    const auto timed = [&](Part part, const auto& body) {
      const Clock::time_point start = Clock::now();
      body();
      times[part] += Since(start);
    };
    size_t next = 0;
    const auto linear = [&](const std::vector<float>& x, std::vector<float>& y,
                            Output output) {
      timed(kLinears, [&] {
        Linear({.x = x.data(),
                .num_rows = num_rows,
                .weight = &weights_[next++],
                .y = y.data(),
                .output = output},
               execution);
      });
    };
    for (int layer = 0; layer < shape_.num_layers; ++layer) {
      timed(kRest, [&] { Normalize(num_rows, execution); });
      linear(normed_, qkv_, Output::kReplace);
      timed(kRest, [&] { RotateAndStore(layer, num_rows, execution); });
      timed(kAttention, [&] { Attend(layer, num_rows, execution); });
      linear(attended_, x_, Output::kAdd);
      timed(kRest, [&] { Normalize(num_rows, execution); });
      linear(normed_, gate_up_, Output::kReplace);
      timed(kRest, [&] {
        SiluMul({.gate_up = gate_up_.data(),
                 .num_rows = num_rows,
                 .size = shape_.ffn,
                 .y = hidden_.data()},
                execution);
      });
      linear(hidden_, x_, Output::kAdd);
    }
    timed(kRest, [&] { Normalize(num_rows, execution); });
    linear(normed_, logits_, Output::kReplace);
    std::fill(x_.begin(), x_.end(), 0.5f);  // lest the residuals grow
    return times;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Line = uint64_t __attribute__((vector_size(64)));
  static constexpr size_t kNumValues = size_t{1} << 20;

  static double Since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  static void ReadLines(const Line* lines, size_t begin, size_t end) {
    Line sums[4] = {};
    for (size_t i = begin; i + 4 <= end; i += 4) {
      for (size_t j = 0; j < 4; ++j) sums[j] += lines[i + j];
    }
    volatile uint64_t sink = (sums[0] + sums[1] + sums[2] + sums[3])[0];
    static_cast<void>(sink);
  }

  // Rows of one array over and over: only their number matters.
  void Add(int out, int in) {
    std::vector<WeightRows> parts;
    const int most = static_cast<int>(kNumValues) / in;
    for (int row = 0; row < out; row += most) {
      const ConstElements elements = type_ == ElementType::kBFloat16
                                         ? ConstElements(rounded_.data())
                                         : ConstElements(values_.data());
      parts.push_back({elements, std::min(most, out - row)});
    }
    weights_.emplace_back(parts, in, memory_);
  }

  void Normalize(int num_rows, const Execution& execution) {
    RmsNorm({.x = x_.data(),
             .weight = norm_.data(),
             .num_rows = num_rows,
             .size = shape_.hidden,
             .epsilon = 1e-5f,
             .y = normed_.data()},
            execution);
  }

  KvSegment Segment(int num_rows) const {
    return {blocks_.data(), num_keys_ - num_rows, num_rows};
  }
  // Keys before values, of one layer.
  BFloat16* Cache(int layer, int which) {
    const size_t size = kv_.size() / (2 * shape_.num_layers);
    return kv_.data() + size * (2 * layer + which);
  }

  void RotateAndStore(int layer, int num_rows, const Execution& execution) {
    ApplyRope({.x = qkv_.data(),
               .row_stride = shape_.qkv_size(),
               .num_rows = num_rows,
               .num_heads = shape_.num_heads + shape_.num_kv_heads,
               .head_dim = Shape::kHeadDim,
               .first_position = num_keys_ - num_rows,
               .cos = angles_.data(),
               .sin = angles_.data()},
              execution);
    const KvSegment segment = Segment(num_rows);
    for (const int which : {0, 1}) {
      StoreKv({.segments = absl::MakeConstSpan(&segment, 1),
               .from = &qkv_[shape_.q_size() + which * shape_.kv_size()],
               .from_stride = shape_.qkv_size(),
               .row_size = shape_.kv_size(),
               .to = Cache(layer, which)},
              execution);
    }
  }

  void Attend(int layer, int num_rows, const Execution& execution) {
    const KvSegment segment = Segment(num_rows);
    Attention({.segments = absl::MakeConstSpan(&segment, 1),
               .queries = qkv_.data(),
               .query_stride = shape_.qkv_size(),
               .keys = Cache(layer, 0),
               .values = Cache(layer, 1),
               .num_heads = shape_.num_heads,
               .num_kv_heads = shape_.num_kv_heads,
               .head_dim = Shape::kHeadDim,
               .scale = 0.125f,
               .out = attended_.data()},
              execution);
  }

  const Shape shape_;
  const ElementType type_;
  const int num_keys_;
  WeightMemory* const memory_;
  const std::vector<float> values_;
  const std::vector<BFloat16> rounded_;
  const std::vector<float> norm_;
  std::vector<PackedWeight> weights_;
  std::vector<float> angles_;
  std::vector<KvBlockId> blocks_;
  std::vector<BFloat16> kv_;
  std::vector<float> x_, normed_, qkv_, attended_, gate_up_, hidden_, logits_;
};

class Percentile {
 public:
  explicit Percentile(int percent) : percent_(percent) {}
  double operator()(std::vector<double> values) const {
    const auto place =
        values.begin() + static_cast<ptrdiff_t>(values.size()) * percent_ / 100;
    std::nth_element(values.begin(), place, values.end());
    return *place;
  }

 private:
  int percent_;
};

// What was measured on one number of threads.
struct Series {
  std::vector<double> reads = {};
  std::array<std::array<std::vector<double>, kNumParts>, std::size(kRows)>
      parts = {};
  std::array<std::vector<double>, std::size(kRows)> passes = {};
};

void Measure(Decoder& decoder, Level level, ThreadPool& pool, Series& series) {
  series.reads.push_back(decoder.Read(pool));
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const Times times = decoder.Pass(kRows[i], {level, &pool});
    series.passes[i].push_back(Total(times));
    for (int part = 0; part < kNumParts; ++part) {
      series.parts[i][part].push_back(times[part]);
    }
  }
}

void Print(const Series& series, const Series& on_heap, const Series& single,
           size_t num_bytes, const Percentile& median) {
  const double read = median(series.reads);
  std::printf("  reading all weights: %.3f ms, %.1f GB/s\n", 1e3 * read,
              1e-9 * static_cast<double>(num_bytes) / read);
  std::printf(
      "  rows  pass ms  T(M)/T(1)  1 thread/this  on the heap/this  read/pass  "
      "linears  attention  rest ms\n");
  const double one_row = median(series.passes[0]);
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const double pass = median(series.passes[i]);
    std::printf("  %4d %8.3f %10.2f %14.2f %17.2f %10.2f %8.3f %10.3f %8.3f\n",
                kRows[i], 1e3 * pass, pass / one_row,
                median(single.passes[i]) / pass,
                median(on_heap.passes[i]) / pass, read / pass,
                1e3 * median(series.parts[i][kLinears]),
                1e3 * median(series.parts[i][kAttention]),
                1e3 * median(series.parts[i][kRest]));
  }
}

void Run(const Flags& flags, const Shape& shape) {
  const ElementType type = flags.dtype == "bfloat16" ? ElementType::kBFloat16
                                                     : ElementType::kFloat32;
  WeightMemory memory;
  Decoder decoder(shape, type, flags.num_keys, &memory);
  Decoder on_heap(shape, type, flags.num_keys, /*memory=*/nullptr);
  ThreadPool alone(1);
  ThreadPool pool(flags.num_threads);
  for (const std::string& name : flags.levels) {
    const Level level = *LevelByName(name);
    Series single, several, single_on_heap, several_on_heap;
    for (int turn = 0; turn < flags.num_turns; ++turn) {
      Measure(decoder, level, alone, single);
      Measure(on_heap, level, alone, single_on_heap);
      Measure(decoder, level, pool, several);
      Measure(on_heap, level, pool, several_on_heap);
    }
    for (const auto& [series, heap, num_threads] :
         {std::tuple(&single, &single_on_heap, 1),
          std::tuple(&several, &several_on_heap, flags.num_threads)}) {
      std::printf("%s, %s, %s, %d keys, %d thread(s)\n", shape.name,
                  flags.dtype.c_str(), LevelName(level), flags.num_keys,
                  num_threads);
      Print(*series, *heap, single, decoder.num_bytes(),
            Percentile(flags.percentile));
    }
  }
}

}  // namespace
}  // namespace outrider::kernels

int main(int argc, char** argv) {
  namespace kernels = outrider::kernels;
  kernels::Flags flags;
  for (const kernels::Level level : kernels::SupportedLevels()) {
    flags.levels.push_back(kernels::LevelName(level));
  }
  CLI::App app("What a decoder's pass costs on this CPU.");
  app.option_defaults()->always_capture_default();
  app.add_option("--shape", flags.shape)
      ->check(CLI::IsMember({"demo-draft", "demo-target", "360M"}));
  app.add_option("--dtype", flags.dtype, "of the weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--levels", flags.levels, "of the kernels")
      ->check(CLI::IsMember(flags.levels));
  app.add_option("--threads", flags.num_threads)
      ->check(outrider::WholeNumberIn(2, 1024));
  app.add_option("--keys", flags.num_keys, "positions before the pass's end")
      ->check(outrider::WholeNumberIn(kernels::kMostRows, 1 << 20));
  app.add_option("--turns", flags.num_turns)
      ->check(outrider::WholeNumberIn(1, 10000));
  app.add_option("--percentile", flags.percentile, "of the turns, to print")
      ->check(outrider::WholeNumberIn(0, 99));
  CLI11_PARSE(app, argc, argv);
  std::string huge_pages = "not there";
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
               huge_pages);
  std::printf("huge pages: %s\n", huge_pages.c_str());
  for (const kernels::Shape& shape : kernels::kShapes) {
    if (flags.shape == shape.name) kernels::Run(flags, shape);
  }
}
