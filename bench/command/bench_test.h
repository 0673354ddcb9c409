// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_BENCH_TEST_H_
#define OUTRIDER_BENCH_COMMAND_BENCH_TEST_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/command/bench_options.h"
#include "core/base/check.h"

namespace outrider::bench {

// Tests have a folder with prompts in it, and read flags as the program does.
class BenchTest : public ::testing::Test {
 protected:
  BenchTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    WritePrompts(40);
  }
  ~BenchTest() override { std::filesystem::remove_all(folder_); }

  void WritePrompts(int count) const {
    std::ofstream file(folder_ / "prompts.jsonl");
    for (int i = 1; i <= count; ++i) {
      file << "{\"prompt\": [" << i << ", 2]}\n";
    }
  }

  // The options, or what is wrong with the flags.
  absl::StatusOr<BenchOptions> Options(std::vector<std::string> arguments,
                                       bool is_sweep = true) const {
    CLI::App app;
    BenchFlags flags;
    AddBenchFlags(app, is_sweep, flags);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    if (!flags.prompts) flags.prompts = (folder_ / "prompts.jsonl").string();
    flags.out = (folder_ / "out").string();
    const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
    OUTRIDER_CHECK(source != nullptr) << "ctest sets OUTRIDER_SOURCE_DIR";
    return ToBenchOptions(flags, is_sweep, source);
  }
  std::string UsageError(const std::vector<std::string>& arguments,
                         bool is_sweep = true) const {
    return std::string(Options(arguments, is_sweep).status().message());
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("bench_command_" + std::to_string(getpid()));
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_BENCH_TEST_H_
