// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_PARSE_FLAGS_H_
#define OUTRIDER_CORE_BASE_PARSE_FLAGS_H_

#include <optional>

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider {

// Exit status for flags that cannot be.
inline constexpr int kExitBadFlags = 2;
// Where the answer to --help or --version cannot be written.
inline constexpr int kExitUnwritten = 1;

// Parses the flags of a program whose name `app` has, those of its subcommands
// included. Where main has to leave at once, returns its exit status: 0 after
// --help and --version, or kExitUnwritten; kExitBadFlags after one line on
// standard error.
[[nodiscard]] std::optional<int> ParseFlags(CLI::App& app, int argc,
                                            char** argv);

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_PARSE_FLAGS_H_
