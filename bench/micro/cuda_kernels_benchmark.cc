// SPDX-License-Identifier: Apache-2.0
// What a decoder's pass costs on a GPU, kernel by kernel. Each kernel is one
// graph of many launches, one after the other, over weights or keys that have
// left the device's cache by then (--cold-mib); a pass is one graph, as the
// model's is, less the embedding and the kernels that answer questions about
// rows, and with no rows to fill a bucket up. Those kernels follow it, each
// alone, over logits that the cache has where they fit: greatest logits found,
// a token drawn from them, a support scored, of so many tokens; of up to 64
// rows, as there are sessions that draw. Each turn measures all of them;
// printed are the medians over the turns. The first line is a plain copy on the
// device, read and written bytes counted: a kernel that only reads may be a
// little faster than that. OUTRIDER_CUDA_LIBRARY, in the environment, names
// another library of kernels than the installed one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/micro/cuda_answers.h"
#include "bench/micro/cuda_decoder.h"
#include "bench/micro/decoder_part.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/open_gpu.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// Those of tools/make_random_pair.py, and one that the emulation has time for.
constexpr DecoderShape kShapes[] = {
    {"llama-3.1-8b", 128256, 4096, 14336, 32, {32, 8, 128}},
    {"llama-3.2-1b", 128256, 2048, 8192, 16, {32, 8, 64}},
    {"smollm2-360m", 49152, 960, 2560, 32, {15, 5, 64}},
    {"tiny", 512, 64, 128, 2, {4, 2, 16}},
};
// What the device is given at once: awaiting it is to be no part of the time.
constexpr double kLeastSeconds = 0.01;
constexpr int kCopies = 10;
constexpr int kMostAnswered = 64;  // rows

struct Flags {
  std::string shape = "llama-3.1-8b";
  std::vector<int> rows = {1, 5, 16, 64};
  int num_keys = 256;
  int device = 0;
  int num_turns = 9;
  size_t cold_mib = 512;
  bool is_json = false;
};

// A part as one graph, and the seconds of a launch in each turn.
struct Timed {
  DecoderPart part = {};
  std::shared_ptr<CUgraphExec_st> graph = {};
  int num_runs = 1;  // that are awaited together
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
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < times; ++i) ask();
  const std::string failure = gpu.Finish();
  if (!failure.empty()) return absl::UnavailableError(failure);
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

absl::StatusOr<Timed> Capture(const std::shared_ptr<Gpu>& gpu,
                              DecoderPart part) {
  // A kernel is loaded before it is captured, as the model's are.
  OUTRIDER_RETURN_IF_ERROR(
      SecondsOf(*gpu, 1, [&] { part.launch(0); }).status());
  if (!gpu->BeginCapture()) return absl::UnavailableError("no graph begins");
  for (int i = 0; i < part.num_launches; ++i) part.launch(i);
  std::shared_ptr<CUgraphExec_st> graph(
      gpu->EndCapture(),
      [gpu](kernels::cuda::Graph done) { gpu->Destroy(done); });
  if (graph == nullptr) return absl::UnavailableError("no graph is taken");
  OUTRIDER_ASSIGN_OR_RETURN(const double seconds,
                            SecondsOf(*gpu, 1, [&] { gpu->Run(graph.get()); }));
  return Timed{.part = std::move(part),
               .graph = std::move(graph),
               .num_runs = 1 + static_cast<int>(kLeastSeconds / seconds)};
}

void PrintDevice(Gpu& gpu, const Flags& flags) {
  const bool is_emulated = gpu.numerics() == "cuda_emulated";
  if (flags.is_json) {
    std::cout << Json{{"device", gpu.name()},
                      {"is_emulated", is_emulated},
                      {"shape", flags.shape},
                      {"keys", flags.num_keys}}
              << std::endl;
    return;
  }
  std::printf("%s: %s, %d keys\n", gpu.name().c_str(), flags.shape.c_str(),
              flags.num_keys);
  if (is_emulated) {
    std::printf("The device is emulated: its times say nothing of a GPU.\n");
  }
  std::printf("%-10s %4s %13s %14s %6s\n", "kernel", "rows", "a launch",
              "weights", "/probe");
}

void Print(const Json& figures, bool is_json) {
  if (is_json) {
    std::cout << figures << std::endl;
    return;
  }
  std::printf("%-10s %4d %10.2f us", figures["name"].get<std::string>().c_str(),
              figures["rows"].get<int>(), figures["us"].get<double>());
  if (figures.contains("share")) {
    std::printf(" %9.1f GB/s %6.3f", figures["gbps"].get<double>(),
                figures["share"].get<double>());
  }
  if (figures.contains("parts_us")) {
    std::printf("   the kernels above: %.2f us",
                figures["parts_us"].get<double>());
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Bytes a second, read and written.
absl::StatusOr<double> Probe(Gpu& gpu, CudaDecoder& decoder,
                             const Flags& flags) {
  size_t bytes = 0;
  std::vector<double> turns;
  for (int turn = 0; turn <= flags.num_turns; ++turn) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const double seconds,
        SecondsOf(gpu, kCopies, [&] { bytes = decoder.Copy(); }));
    if (turn > 0) turns.push_back(seconds);  // the first wakes the device up
  }
  const double seconds = Median(turns);
  const double rate = 2.0 * static_cast<double>(bytes) / seconds;
  Print({{"name", "probe"},
         {"rows", 0},
         {"us", 1e6 * seconds},
         {"gbps", 1e-9 * rate},
         {"share", 1.0}},
        flags.is_json);
  return rate;
}

absl::Status Measure(const std::shared_ptr<Gpu>& gpu, CudaDecoder& decoder,
                     CudaAnswers& answers, int num_rows, double probe,
                     const Flags& flags) {
  OUTRIDER_RETURN_IF_ERROR(decoder.SetRows(num_rows));
  std::vector<DecoderPart> parts = decoder.Parts();
  if (num_rows <= kMostAnswered) {
    OUTRIDER_ASSIGN_OR_RETURN(std::vector<DecoderPart> of_answers,
                              answers.Parts(decoder.logits(), num_rows));
    std::move(of_answers.begin(), of_answers.end(), std::back_inserter(parts));
  }
  std::vector<Timed> all;
  for (DecoderPart& part : parts) {
    OUTRIDER_ASSIGN_OR_RETURN(Timed timed, Capture(gpu, std::move(part)));
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
  double parts_us = 0.0;
  for (const auto& [part, graph, num_runs, turns] : all) {
    const double seconds = Median(turns);
    parts_us += 1e6 * seconds * part.num_in_pass;
    Json figures = {
        {"name", part.name}, {"rows", num_rows}, {"us", 1e6 * seconds}};
    if (part.weight_bytes > 0) {
      const double rate = static_cast<double>(part.weight_bytes) / seconds;
      figures["gbps"] = 1e-9 * rate;
      figures["share"] = rate / probe;
    }
    if (part.is_pass) figures["parts_us"] = parts_us;
    Print(figures, flags.is_json);
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  const char* library = std::getenv("OUTRIDER_CUDA_LIBRARY");
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::shared_ptr<Gpu> gpu,
      OpenGpu(flags.device, library == nullptr ? kCudaLibrary : library));
  PrintDevice(*gpu, flags);
  const DecoderShape& shape = *std::find_if(
      std::begin(kShapes), std::end(kShapes),
      [&](const DecoderShape& s) { return flags.shape == s.name; });
  const int most_rows = *std::max_element(flags.rows.begin(), flags.rows.end());
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::unique_ptr<CudaDecoder> decoder,
      CudaDecoder::Make(gpu, shape,
                        {.rows = most_rows,
                         .num_keys = flags.num_keys,
                         .cold_bytes = flags.cold_mib << 20}));
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::unique_ptr<CudaAnswers> answers,
      CudaAnswers::Make(gpu, shape.vocab_size,
                        std::min(most_rows, kMostAnswered)));
  OUTRIDER_ASSIGN_OR_RETURN(const double probe, Probe(*gpu, *decoder, flags));
  for (const int num_rows : flags.rows) {
    OUTRIDER_RETURN_IF_ERROR(
        Measure(gpu, *decoder, *answers, num_rows, probe, flags));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) try {
  using outrider::WholeNumberIn;
  outrider::Flags flags;
  std::vector<std::string> shapes;
  for (const auto& shape : outrider::kShapes) shapes.emplace_back(shape.name);
  CLI::App app("What a decoder's pass costs on a GPU, kernel by kernel.");
  app.option_defaults()->always_capture_default();
  app.add_option("--shape", flags.shape)->check(CLI::IsMember(shapes));
  app.add_option("--rows", flags.rows, "of a pass")
      ->delimiter(',')
      ->check(WholeNumberIn(1, 1024));
  app.add_option("--keys", flags.num_keys, "of each session, the pass's too")
      ->check(WholeNumberIn(outrider::CudaDecoder::kRowsOfSession, 1 << 17));
  app.add_option("--device", flags.device, "number of the GPU")
      ->check(WholeNumberIn(0, 127));
  app.add_option("--turns", flags.num_turns)->check(WholeNumberIn(1, 10000));
  app.add_option("--cold-mib", flags.cold_mib,
                 "read before the same memory again: more than a cache has")
      ->check(WholeNumberIn(1, 1 << 14));
  app.add_flag("--json", flags.is_json, "a line is a JSON object");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = outrider::Run(flags);
  if (status.ok()) return 0;
  std::cerr << status.message() << std::endl;
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
