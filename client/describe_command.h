// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_
#define OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_

#include "client/command.h"

namespace outrider::client {

// `outrider describe`, as the command line has it.
struct DescribeFlags {
  CoordinatorFlags target = {};
  bool json = false;
};

void AddDescribeFlags(CLI::App& command, DescribeFlags& flags);

int DescribeCommand(const DescribeFlags& flags, const CommandIo& io);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_
