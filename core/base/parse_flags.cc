// SPDX-License-Identifier: Apache-2.0
#include "core/base/parse_flags.h"

#include <CLI/CLI.hpp>
#include <string>

namespace outrider {
namespace {

std::string ToOneLine(const CLI::App* app, const CLI::Error& error) {
  const auto subcommands = app->get_subcommands();
  const std::string command =
      subcommands.empty()
          ? app->get_name()
          : app->get_name() + " " + subcommands.front()->get_name();
  return app->get_name() + ": " + error.what() + " (see " + command +
         " --help)\n";
}

}  // namespace

std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv) {
  app.failure_message(ToOneLine);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadFlags;
  }
  return std::nullopt;
}

}  // namespace outrider
