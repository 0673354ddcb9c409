// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_WRITER_SINK_H_
#define OUTRIDER_COORDINATOR_SERVICE_WRITER_SINK_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/service/generation.h"
#include "coordinator/service/generation_tally.h"
#include "coordinator/service/grpc_response_writer.h"
#include "core/base/task.h"

namespace outrider {

// Counts the rounds of one stream, and passes them on as messages.
class WriterSink final : public GenerationSink {
 public:
  struct Options {
    ResponseWriter& writer;
    CoordinatorMetrics::Tally& tally;
    GenerationUpdate start = {};
    std::function<void()> on_start;  // just before it is told
  };

  explicit WriterSink(Options options) : options_(std::move(options)) {}

  Task<absl::Status> Write(GenerationUpdate update) override;
  // What was computed comes after the start, which names the model that has.
  Task<absl::Status> Tell(GenerationUpdate update);

 private:
  // The start before this first update, whose round says what of the prompt was
  // cached. Later rounds may fill a cache that was lost, which is no gain.
  GenerationUpdate StartBefore(const GenerationUpdate& first) const;

  const Options options_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_WRITER_SINK_H_
