// SPDX-License-Identifier: Apache-2.0
#include "client/command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/rpc/endpoint.h"

namespace outrider::client {

namespace {

size_t WidthOf(int terminal) {
  winsize size = {};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

CommandIo StandardIo() {
  const char* no_color = std::getenv("NO_COLOR");
  return {.in = std::cin,
          .out = std::cout,
          .err = std::cerr,
          .out_is_terminal = isatty(STDOUT_FILENO) == 1,
          .err_is_terminal = isatty(STDERR_FILENO) == 1,
          .no_color = no_color != nullptr && *no_color != '\0',
          .out_width = WidthOf(STDOUT_FILENO)};
}

void AddCoordinatorFlags(CLI::App& command, CoordinatorFlags& flags,
                         const std::string& besides) {
  command
      .add_option_function<std::vector<std::string>>(
          "--coordinator",
          [&flags](const std::vector<std::string>& addresses) {
            flags.coordinator = addresses.front();
            flags.others.assign(addresses.begin() + 1, addresses.end());
          },
          "where outrider-coordinator listens: HOST:PORT or unix:PATH; may be "
          "repeated: where one is down the next is asked" +
              besides)
      ->allow_extra_args(false)
      ->type_name("ADDRESS")
      ->default_str(flags.coordinator);
  command.add_flag("--insecure", flags.insecure,
                   "allow plain text off this machine");
  command
      .add_option("--tls-ca", flags.tls.authority,
                  "connect by TLS, and trust what this PEM file signed")
      ->type_name("FILE");
  command
      .add_option("--tls-cert", flags.tls.certificate,
                  "our certificate, where the coordinator wants one")
      ->type_name("FILE");
  command.add_option("--tls-key", flags.tls.key, "the key of --tls-cert")
      ->type_name("FILE");
  command
      .add_option("--timeout", flags.timeout_seconds,
                  "give up after this long altogether")
      ->type_name("SECONDS")
      ->check(NumberIn(0.001, 1e6))
      ->capture_default_str();
}

std::vector<std::string> CoordinatorsOf(const CoordinatorFlags& flags) {
  std::vector<std::string> all = {flags.coordinator};
  all.insert(all.end(), flags.others.begin(), flags.others.end());
  return all;
}

absl::Status CheckCoordinatorFlags(const CoordinatorFlags& flags) {
  const bool is_safe = flags.insecure || flags.tls.has_authority();
  OUTRIDER_RETURN_IF_ERROR(
      CheckEndpoint(flags.coordinator, is_safe, "--coordinator"));
  for (const std::string& other : flags.others) {
    OUTRIDER_RETURN_IF_ERROR(CheckEndpoint(other, is_safe, "--coordinator"));
  }
  if (flags.tls.has_identity() && !flags.tls.has_authority()) {
    return absl::InvalidArgumentError(
        "--tls-cert needs --tls-ca, which says whom to trust: without it the "
        "connection is plain text");
  }
  return CheckTlsFiles(flags.tls);
}

int Finish(const CommandIo& io, int exit_status) {
  if (io.out.flush()) return exit_status;
  return FailCall(io.err, CannotWrite());
}

absl::Status CannotWrite() {
  return absl::DataLossError("cannot write to the output");
}

int FailUsage(std::ostream& err, const absl::Status& status) {
  err << "outrider: " << status.message() << "\n";
  return kExitBadUsage;
}

int FailCall(std::ostream& err, const absl::Status& status) {
  err << "outrider: " << absl::StatusCodeToString(status.code()) << ": "
      << status.message() << "\n";
  return kExitFailed;
}

}  // namespace outrider::client
