// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_COMMAND_BENCH_COMMAND_H_
#define OUTRIDER_BENCH_COMMAND_BENCH_COMMAND_H_

#include "bench/command/bench_options.h"
#include "client/command.h"
#include "core/base/cancellation.h"

namespace outrider::bench {

// Measures all points that the folder of results does not have yet, and writes
// the reports, also where it is cancelled. The exit status.
int Bench(BenchOptions& options, const client::CommandIo& io,
          Cancellation& cancellation);

// All of it, on the process's own streams and signals.
int BenchCommand(const BenchFlags& flags, bool is_sweep);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_COMMAND_BENCH_COMMAND_H_
