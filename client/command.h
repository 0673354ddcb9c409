// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_COMMAND_H_
#define OUTRIDER_CLIENT_COMMAND_H_

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "core/rpc/tls_files.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider::client {

// Exit statuses of every subcommand.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // an RPC, or the output
inline constexpr int kExitBadUsage = 2;  // flags and values
inline constexpr int kExitInterrupted = 130;

// What a command sees of its surroundings; tests bring their own.
struct CommandIo {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool no_color = false;  // https://no-color.org
  size_t out_width = 0;   // columns of its terminal; 0: it is none
};
// The process's own streams.
CommandIo StandardIo();

// Flags that every command has.
struct CoordinatorFlags {
  std::string coordinator = "127.0.0.1:7000";  // the coordinator's default
  std::vector<std::string> others = {};        // to go on at
  bool insecure = false;
  TlsFiles tls = {};
  double timeout_seconds = 600;
};
// `besides`: what help says of several coordinators, besides the order in which
// they are asked.
void AddCoordinatorFlags(CLI::App& command, CoordinatorFlags& flags,
                         const std::string& besides = "");
// All of them, as they were named.
std::vector<std::string> CoordinatorsOf(const CoordinatorFlags& flags);
// INVALID_ARGUMENT: an address or file that cannot be.
absl::Status CheckCoordinatorFlags(const CoordinatorFlags& flags);

// Flushes what the command has printed: `exit_status`, or that for output that
// cannot be written, after a line on `err`.
int Finish(const CommandIo& io, int exit_status);
// DATA_LOSS, which says so.
absl::Status CannotWrite();

// One line on `err`, and the exit status for it: the flags' fault or the
// call's.
int FailUsage(std::ostream& err, const absl::Status& status);
int FailCall(std::ostream& err, const absl::Status& status);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_COMMAND_H_
