// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <string>

#include "client/command.h"
#include "client/describe_command.h"
#include "client/generate_command.h"
#include "core/rpc/channel.h"

namespace {

std::string ToOneLine(const CLI::App* app, const CLI::Error& error) {
  const auto subcommands = app->get_subcommands();
  const std::string name =
      subcommands.empty() ? "" : " " + subcommands.front()->get_name();
  return "outrider: " + std::string(error.what()) + " (see outrider" + name +
         " --help)\n";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace outrider::client;  // NOLINT(google-build-using-namespace)
  outrider::SetUpGrpc();

  CLI::App app("Speculative decoding over gRPC: the client.", "outrider");
  app.set_version_flag("--version", "outrider " OUTRIDER_VERSION);
  app.require_subcommand(1);
  app.failure_message(ToOneLine);
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

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBadUsage;
  }
  return run();
}
