// SPDX-License-Identifier: Apache-2.0
#include "core/base/parse_flags.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outrider {
namespace {

// Which commands there are, where one is missing or is none of them; empty:
// something else is wrong.
std::string WhyNoCommand(const CLI::App& app, const CLI::Error& error) {
  if (error.get_exit_code() !=
      static_cast<int>(CLI::ExitCodes::RequiredError)) {
    return "";
  }
  const auto commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty() || !app.get_subcommands().empty()) return "";
  const std::string names =
      absl::StrJoin(commands, ", ", [](std::string* out, const CLI::App* each) {
        absl::StrAppend(out, each->get_name());
      });
  const std::vector<std::string> words = app.remaining();
  return words.empty() ? absl::StrCat("needs a command: ", names)
                       : absl::StrCat("no command \"", words.front(),
                                      "\"; there are ", names);
}

// A remedy where a dash made a flag of what may have been meant as the word
// that the command takes.
std::string HintAtDashes(const CLI::App& command, const CLI::Error& error) {
  const bool is_extra =
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  const std::vector<std::string> words = command.remaining();
  if (!is_extra || words.empty() || !absl::StartsWith(words.front(), "-")) {
    return "";
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    return absl::StrCat("; a ", option->get_name(/*positional=*/true),
                        " that begins with a dash stands after --");
  }
  return "";
}

std::string ToOneLine(const CLI::App* app, const CLI::Error& error) {
  const auto subcommands = app->get_subcommands();
  const CLI::App* const innermost =
      subcommands.empty() ? app : subcommands.front();
  std::string command = app->get_name();
  if (innermost != app) absl::StrAppend(&command, " ", innermost->get_name());
  const std::string why = WhyNoCommand(*innermost, error);
  return absl::StrCat(app->get_name(), ": ", why.empty() ? error.what() : why,
                      HintAtDashes(*innermost, error), " (see ", command,
                      " --help)\n");
}

}  // namespace

std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv) {
  app.failure_message(ToOneLine);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int exit_status = app.exit(error) == 0 ? 0 : kExitBadFlags;
    // What --help and --version print may find no room.
    if (std::cout.flush()) return exit_status;
    std::cerr << app.get_name() << ": cannot write to the output\n";
    return kExitUnwritten;
  }
  return std::nullopt;
}

}  // namespace outrider
