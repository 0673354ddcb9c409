// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <functional>

#include "client/command.h"
#include "client/describe_command.h"
#include "client/generate_command.h"
#include "core/base/parse_flags.h"
#include "core/rpc/channel.h"

int main(int argc, char** argv) {
  using namespace outrider::client;  // NOLINT(google-build-using-namespace)
  outrider::SetUpGrpc();

  CLI::App app("Speculative decoding over gRPC: the client.", "outrider");
  app.set_version_flag("--version", "outrider " OUTRIDER_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);

  std::function<int()> run;
  GenerateFlags generate_flags;
  CLI::App* const generate =
      app.add_subcommand("generate", "Continue a prompt, and say how it went.");
  AddGenerateFlags(*generate, generate_flags);
  generate->final_callback(
      [&] { run = [&] { return GenerateCommand(generate_flags); }; });

  DescribeFlags describe_flags;
  CLI::App* const describe =
      app.add_subcommand("describe", "List the nodes behind a coordinator.");
  AddDescribeFlags(*describe, describe_flags);
  describe->final_callback([&] {
    run = [&] { return DescribeCommand(describe_flags, StandardIo()); };
  });

  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  return run();
}
