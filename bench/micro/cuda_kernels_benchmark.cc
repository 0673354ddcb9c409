// SPDX-License-Identifier: Apache-2.0
// What a decoder's pass costs on a GPU, kernel by kernel. Each kernel is one
// graph of many launches, one after the other, over weights or keys that are
// not in the device's cache by then; a pass is one graph as the model's is,
// less the embedding. Each turn measures all of them; printed are the medians.
// The first line is a plain copy on the device, read and written bytes counted:
// a kernel that only reads may be a little faster than that. Rows are not
// filled up to a graph's bucket. The environment's OUTRIDER_CUDA_LIBRARY names
// another library of kernels than the one beside the program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/flag_checks.h"
#include "core/base/kv_block.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/open_gpu.h"
#include "core/cuda_model/step_inputs.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using kernels::cuda::Epilogue;
using kernels::cuda::Heads;

constexpr size_t kElementBytes = 2;
constexpr size_t kMiB = size_t{1} << 20;
// Rows of one session: its pending token and four drafts, a round of K = 4.
// More rows are more sessions, the last of which may have fewer.
constexpr int kRowsOfSession = 5;
// A graph's own launch takes some microseconds: it is to be no part of a
// kernel's time, nor is awaiting the device.
constexpr int kFewestLaunches = 64;
constexpr double kLeastSeconds = 0.01;

struct Shape {
  const char* name = "";
  int vocab_size = 0;
  int hidden = 0;
  int inner = 0;
  int num_layers = 0;
  Heads heads = {};

  int q_size() const { return heads.num_heads * heads.head_dim; }
  int kv_size() const { return heads.num_kv_heads * heads.head_dim; }
};
// Those of tools/make_random_pair.py, and one that the emulation has time for.
constexpr Shape kShapes[] = {
    {"llama-3.1-8b", 128256, 4096, 14336, 32, {32, 8, 128}},
    {"llama-3.2-1b", 128256, 2048, 8192, 16, {32, 8, 64}},
    {"smollm2-360m", 49152, 960, 2560, 32, {15, 5, 64}},
    {"tiny", 512, 64, 128, 2, {4, 2, 16}},
};

struct Flags {
  std::string shape = "llama-3.1-8b";
  std::vector<int> rows = {1, 5, 16, 64};
  int num_keys = 256;
  int device = 0;
  int num_turns = 9;
  size_t cold_mib = 512;
  bool is_json = false;
};

// A matrix of a layer, or the head, and where its product goes.
struct Product {
  const char* name = "";
  int out = 0;
  int in = 0;
  Epilogue epilogue = Epilogue::kStore;
  const void* x = nullptr;
  void* y = nullptr;

  size_t bytes() const { return kernels::cuda::PackedBytes(out, in); }
};

// What is timed: launches that differ in nothing but the memory they read.
struct Part {
  const char* name = "";
  int num_launches = 1;  // of a graph
  std::function<void(int)> launch = {};
  int num_in_pass = 0;
  size_t weight_bytes = 0;  // that a launch reads
};

// The weights, keys and activations of a decoder, all of them small random
// numbers: zeros would let the device run faster, and NaN is no fair number.
class Decoder {
 public:
  static absl::StatusOr<std::unique_ptr<Decoder>> Make(std::shared_ptr<Gpu> gpu,
                                                       const Shape& shape,
                                                       const Flags& flags) {
    std::unique_ptr<Decoder> decoder(new Decoder(std::move(gpu), shape, flags));
    OUTRIDER_RETURN_IF_ERROR(decoder->AllocateAll());
    return decoder;
  }

  // A copy of so many bytes on the device.
  size_t CopyBytes() const { return std::min(weights_bytes_ / 2, 1024 * kMiB); }
  void Copy() {
    gpu_->Copy(weights_ + weights_bytes_ / 2, weights_, CopyBytes());
  }

  // Which sessions the rows are of.
  absl::Status SetRows(int num_rows) {
    const int num_blocks = NumKvBlocks(num_keys_);
    std::vector<int> memory(StepArrays::Bytes(limits_) / sizeof(int));
    const std::vector<TokenId> tokens(kRowsOfSession);
    std::vector<KvBlockId> blocks(num_blocks);
    StepInputs step(limits_, memory.data());
    for (int first = 0; first < num_rows; first += kRowsOfSession) {
      std::iota(blocks.begin(), blocks.end(),
                first / kRowsOfSession * num_blocks);
      const int count = std::min(kRowsOfSession, num_rows - first);
      step.Add({.blocks = blocks,
                .cached_length = num_keys_ - count,
                .tokens = absl::MakeConstSpan(tokens).first(count),
                .num_rows = count},
               /*first=*/0);
    }
    step_ = step.shape();
    gpu_->Upload(inputs_memory_, step.memory(), step.bytes());
    return Finish();  // before `memory` goes
  }

  // In the order of a pass, which is the last of them.
  std::vector<Part> Parts() {
    const int layers = shape_.num_layers;
    std::vector<Part> parts;
    for (const Product& product : Products()) {
      parts.push_back(Rotating(
          {.name = product.name,
           .launch =
               [this, product,
                count = Copies(product.bytes(), weights_bytes_)](int i) {
                 Multiply(product, weights_ + i % count * product.bytes());
               },
           .num_in_pass = product.out == shape_.vocab_size ? 1 : layers,
           .weight_bytes = product.bytes()},
          product.bytes(), weights_bytes_));
    }
    const size_t kv_bytes = KvBytes(step_.num_rows);
    const size_t num_kv = Copies(kv_bytes, kv_bytes_);
    // In a pass, too, a norm's rows and those that are turned come from the
    // cache. Its weight, a row's worth, comes from it here alone.
    parts.insert(parts.begin(),
                 {.name = "norm",
                  .num_launches = kFewestLaunches,
                  .launch = [this](int i) { Normalize(i % NumNorms()); },
                  .num_in_pass = NumNorms()});
    parts.insert(
        parts.begin() + 2,
        {Rotating({.name = "rotate",
                   .launch = [this, num_kv](int i) { RotateStore(i % num_kv); },
                   .num_in_pass = layers},
                  kv_bytes, kv_bytes_),
         Rotating({.name = "attention",
                   .launch = [this, num_kv](int i) { Attend(i % num_kv); },
                   .num_in_pass = layers},
                  kv_bytes, kv_bytes_)});
    parts.push_back({.name = "pass",
                     .launch = [this](int) { RunPass(); },
                     .weight_bytes = PassBytes()});
    return parts;
  }

 private:
  Decoder(std::shared_ptr<Gpu> gpu, const Shape& shape, const Flags& flags)
      : gpu_(std::move(gpu)),
        shape_(shape),
        num_keys_(flags.num_keys),
        cold_bytes_(flags.cold_mib * kMiB),
        most_rows_(*std::max_element(flags.rows.begin(), flags.rows.end())),
        limits_({.rows = most_rows_,
                 .table_entries =
                     NumSessions(most_rows_) * NumKvBlocks(flags.num_keys),
                 .group = shape.heads.num_heads / shape.heads.num_kv_heads}) {}

  static int NumSessions(int num_rows) {
    return (num_rows + kRowsOfSession - 1) / kRowsOfSession;
  }
  int NumNorms() const { return 2 * shape_.num_layers + 1; }

  absl::Status AllocateAll() {
    std::minstd_rand random(3);
    block_.resize(32 * kMiB);
    for (uint16_t& bits : block_) {
      // Signs and mantissas are random, exponents those of 2^-7 to 2^-4.
      const uint32_t word = random() >> 8;
      bits =
          static_cast<uint16_t>((word & 0x807F) | (120 + (word >> 8) % 4) << 7);
    }
    size_t most_bytes = 0;
    for (const Product& product : Products()) {
      most_bytes = std::max(most_bytes, product.bytes());
    }
    weights_bytes_ = std::max(PassBytes(), cold_bytes_ + most_bytes);
    const size_t kv_bytes = KvBytes(most_rows_);
    kv_bytes_ = std::max(shape_.num_layers * kv_bytes, cold_bytes_ + kv_bytes);
    const auto rows = static_cast<size_t>(most_rows_);
    const size_t angle_bytes =
        sizeof(float) * num_keys_ * shape_.heads.head_dim / 2;
    const size_t qkv_size = shape_.q_size() + 2 * shape_.kv_size();
    const size_t scratch = kernels::cuda::AttentionScratchFloats(
        shape_.heads, limits_.tiles(), num_keys_);
    const std::pair<char**, size_t> pieces[] = {
        {&weights_, weights_bytes_},
        {&kv_, kv_bytes_},
        {&norms_, sizeof(float) * NumNorms() * shape_.hidden},
        {&inputs_memory_, StepArrays::Bytes(limits_)},
        {&cos_, angle_bytes},
        {&sin_, angle_bytes},
        {&x_, rows * shape_.hidden * sizeof(float)},
        {&normed_, rows * shape_.hidden * kElementBytes},
        {&qkv_, rows * qkv_size * sizeof(float)},
        {&queries_, rows * shape_.q_size() * kElementBytes},
        {&attended_, rows * shape_.q_size() * kElementBytes},
        {&inner_, rows * shape_.inner * kElementBytes},
        {&logits_, rows * shape_.vocab_size * sizeof(float)},
        {&scratch_, scratch * sizeof(float)}};
    for (const auto& [piece, bytes] : pieces) {
      OUTRIDER_ASSIGN_OR_RETURN(
          DeviceMemory memory,
          DeviceMemory::Allocate(gpu_, bytes, "a benchmark's model"));
      *piece = memory.as<char>();
      Fill(*piece, bytes);
      memory_.push_back(std::move(memory));
    }
    inputs_ = StepArrays(limits_, inputs_memory_);
    return Finish();
  }

  // Two of the random numbers are a float32 that is small and finite too.
  void Fill(char* to, size_t bytes) {
    const size_t block_bytes = block_.size() * kElementBytes;
    gpu_->Upload(to, block_.data(), std::min(bytes, block_bytes));
    for (size_t done = block_bytes; done < bytes; done += block_bytes) {
      gpu_->Copy(to + done, to, std::min(bytes - done, block_bytes));
    }
  }

  absl::Status Finish() {
    const std::string failure = gpu_->Finish();
    return failure.empty() ? absl::OkStatus() : absl::UnavailableError(failure);
  }

  // Pieces that launches take in turn, so that one comes back after
  // `cold_bytes_` of others; `bytes_of_all` has room for them.
  size_t Copies(size_t bytes, size_t bytes_of_all) const {
    return std::min((cold_bytes_ + bytes - 1) / bytes, bytes_of_all / bytes);
  }
  Part Rotating(Part part, size_t bytes, size_t bytes_of_all) const {
    part.num_launches = std::max(kFewestLaunches,
                                 static_cast<int>(Copies(bytes, bytes_of_all)));
    return part;
  }

  std::array<Product, 5> Products() const {
    const int hidden = shape_.hidden, inner = shape_.inner;
    const int qkv = shape_.q_size() + 2 * shape_.kv_size();
    return {{{"qkv", qkv, hidden, Epilogue::kStore, normed_, qkv_},
             {"output", hidden, shape_.q_size(), Epilogue::kAdd, attended_, x_},
             {"up", 2 * inner, hidden, Epilogue::kSiluMul, normed_, inner_},
             {"down", hidden, inner, Epilogue::kAdd, inner_, x_},
             {"head", shape_.vocab_size, hidden, Epilogue::kStore, normed_,
              logits_}}};
  }
  size_t PassBytes() const {
    const auto [qkv, output, up, down, head] = Products();
    return head.bytes() + shape_.num_layers * (qkv.bytes() + output.bytes() +
                                               up.bytes() + down.bytes());
  }
  // Keys and values of a layer.
  size_t KvBytes(int num_rows) const {
    return 2 * kElementBytes * NumSessions(num_rows) * NumKvBlocks(num_keys_) *
           kKvBlockLength * shape_.kv_size();
  }
  kernels::cuda::KvLayer Kv(size_t i) const {
    const size_t bytes = KvBytes(step_.num_rows);
    return {.keys = kv_ + i * bytes, .values = kv_ + i * bytes + bytes / 2};
  }

  void Multiply(const Product& product, const char* tiles) {
    gpu_->Run(kernels::cuda::LinearArgs{
        .weight = {.tiles = tiles, .out = product.out, .in = product.in},
        .x = product.x,
        .num_rows = step_.num_rows,
        .epilogue = product.epilogue,
        .y = product.y});
  }

  void Normalize(int norm) {
    const bool is_last = norm == NumNorms() - 1;
    gpu_->RunRmsNorm(
        {.x = As<float>(x_),
         .rows = is_last ? inputs_.logit_rows : nullptr,
         .weight = As<float>(norms_) + size_t{1} * norm * shape_.hidden,
         .num_rows = step_.num_rows,
         .size = shape_.hidden,
         .epsilon = 1e-5f,
         .y = normed_});
  }

  void RotateStore(size_t kv) {
    gpu_->Run(kernels::cuda::RotateStoreArgs{.heads = shape_.heads,
                                             .qkv = As<float>(qkv_),
                                             .num_rows = step_.num_rows,
                                             .positions = inputs_.positions,
                                             .blocks = inputs_.blocks,
                                             .cos = As<float>(cos_),
                                             .sin = As<float>(sin_),
                                             .queries = queries_,
                                             .kv = Kv(kv)});
  }

  void Attend(size_t kv) {
    gpu_->Run(kernels::cuda::AttentionArgs{
        .heads = shape_.heads,
        .queries = queries_,
        .kv = Kv(kv),
        .tables = inputs_.tables,
        .tiles = inputs_.tiles,
        .num_tiles = step_.num_tiles,
        .longest = step_.longest,
        .scale = 1.0f / std::sqrt(static_cast<float>(shape_.heads.head_dim)),
        .scratch = As<float>(scratch_),
        .out = attended_});
  }

  void RunPass() {
    const auto [qkv, output, up, down, head] = Products();
    const char* weights = weights_;
    const auto multiply = [&](const Product& product) {
      Multiply(product, weights);
      weights += product.bytes();
    };
    for (int i = 0; i < shape_.num_layers; ++i) {
      Normalize(2 * i);
      multiply(qkv);
      RotateStore(i);
      Attend(i);
      multiply(output);
      Normalize(2 * i + 1);
      multiply(up);
      multiply(down);
    }
    Normalize(NumNorms() - 1);
    multiply(head);
  }

  template <typename T>
  static T* As(char* memory) {
    return reinterpret_cast<T*>(memory);
  }

  const std::shared_ptr<Gpu> gpu_;
  const Shape shape_;
  const int num_keys_;
  const size_t cold_bytes_;
  const int most_rows_;
  const StepLimits limits_;
  std::vector<uint16_t> block_;
  std::vector<DeviceMemory> memory_;
  size_t weights_bytes_ = 0, kv_bytes_ = 0;
  char *weights_ = nullptr, *kv_ = nullptr, *norms_ = nullptr;
  char *inputs_memory_ = nullptr, *cos_ = nullptr, *sin_ = nullptr;
  char *x_ = nullptr, *normed_ = nullptr, *qkv_ = nullptr, *queries_ = nullptr;
  char *attended_ = nullptr, *inner_ = nullptr, *logits_ = nullptr;
  char* scratch_ = nullptr;
  StepArrays inputs_ = {};
  StepShape step_ = {};
};

// A part as one graph, and the seconds of a launch in each turn.
struct Timed {
  Part part = {};
  std::shared_ptr<CUgraphExec_st> graph = {};
  int num_runs = 1;  // that one turn awaits together
  std::vector<double> seconds = {};
};

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

absl::StatusOr<double> SecondsOf(Gpu& gpu, int times,
                                 const std::function<void()>& ask) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) ask();
  const std::string failure = gpu.Finish();
  if (!failure.empty()) return absl::UnavailableError(failure);
  const std::chrono::duration<double> all =
      std::chrono::steady_clock::now() - start;
  return all.count() / times;
}

absl::StatusOr<Timed> Capture(const std::shared_ptr<Gpu>& gpu, Part part) {
  // Loads the kernels, which a capture might not.
  OUTRIDER_RETURN_IF_ERROR(
      SecondsOf(*gpu, 1, [&] { part.launch(0); }).status());
  if (!gpu->BeginCapture()) return absl::UnavailableError("no graphs");
  for (int i = 0; i < part.num_launches; ++i) part.launch(i);
  const auto destroy = [gpu](kernels::cuda::Graph graph) {
    gpu->Destroy(graph);
  };
  Timed timed = {.part = part, .graph = {gpu->EndCapture(), destroy}};
  if (timed.graph == nullptr) return absl::UnavailableError("no such graph");
  OUTRIDER_ASSIGN_OR_RETURN(const double once, SecondsOf(*gpu, 1, [&] {
                              gpu->Run(timed.graph.get());
                            }));
  timed.num_runs = 1 + static_cast<int>(kLeastSeconds / once);
  return timed;
}

// One line, as people or programs read it.
void Print(bool is_json, const nlohmann::ordered_json& figures) {
  if (is_json) {
    std::cout << figures.dump() << std::endl;
    return;
  }
  std::printf("%-10s %4d %10.2f us", figures["name"].get<std::string>().c_str(),
              figures["rows"].get<int>(), figures["us"].get<double>());
  if (figures.contains("share")) {
    std::printf(" %8.1f GB/s %6.3f", figures["gbps"].get<double>(),
                figures["share"].get<double>());
  }
  if (figures.contains("sum_us")) {
    std::printf("   its parts: %.2f us", figures["sum_us"].get<double>());
  }
  std::printf("\n");
}

absl::Status Measure(const std::shared_ptr<Gpu>& gpu, Decoder& decoder,
                     int num_rows, double probe, const Flags& flags) {
  OUTRIDER_RETURN_IF_ERROR(decoder.SetRows(num_rows));
  std::vector<Timed> all;
  for (const Part& part : decoder.Parts()) {
    OUTRIDER_ASSIGN_OR_RETURN(Timed timed, Capture(gpu, part));
    all.push_back(std::move(timed));
  }
  for (int turn = 0; turn < flags.num_turns; ++turn) {
    for (Timed& timed : all) {
      OUTRIDER_ASSIGN_OR_RETURN(const double seconds,
                                SecondsOf(*gpu, timed.num_runs, [&] {
                                  gpu->Run(timed.graph.get());
                                }));
      timed.seconds.push_back(seconds / timed.part.num_launches);
    }
  }
  double sum_us = 0.0;
  for (const Timed& timed : all) {
    const double seconds = Median(timed.seconds);
    sum_us += 1e6 * seconds * timed.part.num_in_pass;
    nlohmann::ordered_json figures = {
        {"name", timed.part.name}, {"rows", num_rows}, {"us", 1e6 * seconds}};
    if (timed.part.weight_bytes > 0) {
      const double rate =
          static_cast<double>(timed.part.weight_bytes) / seconds;
      figures["gbps"] = 1e-9 * rate;
      figures["share"] = rate / probe;
    }
    if (timed.part.num_in_pass == 0) figures["sum_us"] = sum_us;
    Print(flags.is_json, figures);
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  const char* library = std::getenv("OUTRIDER_CUDA_LIBRARY");
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::shared_ptr<Gpu> gpu,
      OpenGpu(flags.device, library == nullptr ? kCudaLibrary : library));
  const bool is_emulated = gpu->numerics() == "cuda_emulated";
  if (flags.is_json) {
    std::cout << nlohmann::ordered_json{{"device", gpu->name()},
                                        {"emulated", is_emulated},
                                        {"shape", flags.shape},
                                        {"keys", flags.num_keys}}
                     .dump()
              << std::endl;
  } else {
    std::printf(
        "%s, %s, %d keys\n%s", gpu->name().c_str(), flags.shape.c_str(),
        flags.num_keys,
        is_emulated
            ? "The device is emulated: these times say nothing of a GPU.\n"
            : "");
    std::printf("%-10s %4s %13s %13s %6s\n", "kernel", "rows", "a launch",
                "weights", "/probe");
  }
  const Shape& shape =
      *std::find_if(std::begin(kShapes), std::end(kShapes),
                    [&](const Shape& s) { return flags.shape == s.name; });
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                            Decoder::Make(gpu, shape, flags));
  std::vector<double> copies;
  for (int turn = 0; turn <= flags.num_turns; ++turn) {
    OUTRIDER_ASSIGN_OR_RETURN(const double seconds,
                              SecondsOf(*gpu, 10, [&] { decoder->Copy(); }));
    if (turn > 0) copies.push_back(seconds);  // the first wakes the device up
  }
  const double probe =
      2.0 * static_cast<double>(decoder->CopyBytes()) / Median(copies);
  Print(flags.is_json, {{"name", "probe"},
                        {"rows", 0},
                        {"us", 1e6 * Median(copies)},
                        {"gbps", 1e-9 * probe},
                        {"share", 1.0}});
  for (const int num_rows : flags.rows) {
    OUTRIDER_RETURN_IF_ERROR(Measure(gpu, *decoder, num_rows, probe, flags));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  outrider::Flags flags;
  std::vector<std::string> shapes;
  for (const outrider::Shape& shape : outrider::kShapes) {
    shapes.emplace_back(shape.name);
  }
  CLI::App app("What a decoder's pass costs on a GPU, kernel by kernel.");
  app.option_defaults()->always_capture_default();
  app.add_option("--shape", flags.shape)->check(CLI::IsMember(shapes));
  app.add_option("--rows", flags.rows, "of a pass")
      ->delimiter(',')
      ->check(outrider::WholeNumberIn(1, 1024));
  app.add_option("--keys", flags.num_keys, "of each session, the pass's too")
      ->check(outrider::WholeNumberIn(outrider::kRowsOfSession, 1 << 17));
  app.add_option("--device", flags.device, "number of the GPU")
      ->check(outrider::WholeNumberIn(0, 127));
  app.add_option("--turns", flags.num_turns)
      ->check(outrider::WholeNumberIn(1, 10000));
  app.add_option("--cold-mib", flags.cold_mib,
                 "read before the same memory again: more than a cache has")
      ->check(outrider::WholeNumberIn(1, 1 << 14));
  app.add_flag("--json", flags.is_json, "a JSON object a line");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = outrider::Run(flags);
  if (status.ok()) return 0;
  std::cerr << status.message() << std::endl;
  return 1;
}
