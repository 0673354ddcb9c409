// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_
#define OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_

#include <string>

#include "client/command.h"
#include "client/generation_client.h"

namespace outrider::client {

// `outrider describe`, as the command line has it.
struct DescribeFlags {
  CoordinatorFlags target = {};
};

void AddDescribeFlags(CLI::App& command, DescribeFlags& flags);

// A line a node, in columns, then what else there is to know.
std::string ToTable(const Deployment& deployment);

int DescribeCommand(const DescribeFlags& flags, const CommandIo& io);

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_DESCRIBE_COMMAND_H_
