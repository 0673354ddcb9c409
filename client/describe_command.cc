// SPDX-License-Identifier: Apache-2.0
#include "client/describe_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/deployment_report.h"

namespace outrider::client {
namespace {

// Asks one coordinator after the other until one is there. Each has an equal
// share of the time that is left.
absl::StatusOr<Deployment> DescribeAny(const CoordinatorFlags& target,
                                       const CommandIo& io) {
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(target.timeout_seconds));
  const std::vector<std::string> all = CoordinatorsOf(target);
  for (size_t i = 0;; ++i) {
    const auto share =
        (deadline - Clock::now()) / static_cast<int64_t>(all.size() - i);
    absl::StatusOr<Deployment> deployment =
        GenerationClient(all[i], target.tls)
            .Describe(std::chrono::ceil<std::chrono::milliseconds>(share));
    const bool is_down = absl::IsUnavailable(deployment.status()) ||
                         absl::IsDeadlineExceeded(deployment.status());
    if (!is_down || i + 1 == all.size()) return deployment;
    io.err << "outrider: " << all[i] << " does not answer, asking the next: "
           << deployment.status().message() << "\n";
  }
}

}  // namespace

void AddDescribeFlags(CLI::App& command, DescribeFlags& flags) {
  flags.target.timeout_seconds = 10;
  AddCoordinatorFlags(command, flags.target);
  command.add_flag("--json", flags.json, "print one JSON object");
  command.footer("Example:\n  outrider describe --coordinator 127.0.0.1:7010");
}

int DescribeCommand(const DescribeFlags& flags, const CommandIo& io) {
  const CoordinatorFlags& target = flags.target;
  if (const absl::Status status = CheckCoordinatorFlags(target); !status.ok()) {
    return FailUsage(io.err, status);
  }
  const absl::StatusOr<Deployment> deployment = DescribeAny(target, io);
  if (!deployment.ok()) return FailCall(io.err, deployment.status());
  io.out << (flags.json ? ToJson(*deployment) + "\n"
                        : ToText(*deployment, io.out_width));
  return Finish(io, kExitOk);
}

}  // namespace outrider::client
