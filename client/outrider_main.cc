// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/command/bench_command.h"
#include "client/command.h"
#include "client/describe_command.h"
#include "client/generate_command.h"
#include "core/base/build_version.h"
#include "core/base/help_formatter.h"
#include "core/base/parse_flags.h"
#include "core/rpc/channel.h"

int main(int argc, char** argv) {
  using namespace outrider::client;  // NOLINT(google-build-using-namespace)
  outrider::SetUpGrpc();

  CLI::App app("Speculative decoding over gRPC: the client.", "outrider");
  app.set_version_flag("--version",
                       absl::StrCat("outrider ", outrider::kBuildVersion));
  app.require_subcommand(1);
  app.formatter(std::make_shared<outrider::HelpFormatter>());

  std::function<int()> run;
  GenerateFlags generate_flags;
  CLI::App* const generate =
      app.add_subcommand("generate", "Continue a prompt, and say how it went.");
  AddGenerateFlags(*generate, generate_flags);
  generate_flags.words.assign(argv, argv + argc);
  generate->final_callback(
      [&] { run = [&] { return GenerateCommand(generate_flags); }; });

  DescribeFlags describe_flags;
  CLI::App* const describe =
      app.add_subcommand("describe", "List the nodes behind a coordinator.");
  AddDescribeFlags(*describe, describe_flags);
  describe->final_callback([&] {
    run = [&] { return DescribeCommand(describe_flags, StandardIo()); };
  });

  CLI::App* const bench = app.add_subcommand(
      "bench", "Measure speed-up over round-trip time, K and load.");
  bench->require_subcommand(1);
  outrider::bench::BenchFlags bench_flags[2];
  for (const bool is_sweep : {false, true}) {
    outrider::bench::BenchFlags& flags = bench_flags[is_sweep ? 1 : 0];
    CLI::App* const command =
        is_sweep ? bench->add_subcommand("sweep", "All cells of a grid.")
                 : bench->add_subcommand("run", "One point, beside K = 0.");
    AddBenchFlags(*command, is_sweep, flags);
    command->final_callback([&run, &flags, is_sweep] {
      run = [&flags, is_sweep] {
        return outrider::bench::BenchCommand(flags, is_sweep);
      };
    });
  }

  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  return run();
}
