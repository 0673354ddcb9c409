// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/writer_sink.h"

#include <algorithm>

#include "core/rpc/call_queue.h"
#include "core/wire/generation_convert.h"

namespace outrider {
namespace {

// A function of its own, so that nothing else of the message is left while the
// writer waits for the client.
EncodedResponse Encode(const GenerationUpdate& update) {
  return ResponseWriter::Encode(ToProto(update));
}

}  // namespace

Task<absl::Status> WriterSink::Write(GenerationUpdate update) {
  using Clock = CoordinatorMetrics::Clock;
  options_.tally.Round(update);
  const Clock::time_point told_at = Clock::now();
  absl::Status status = co_await Tell(std::move(update));
  options_.tally.Waited(Clock::now() - told_at);
  co_return status;
}

Task<absl::Status> WriterSink::Tell(GenerationUpdate update) {
  const bool is_last = update.finish.has_value();
  if (!options_.writer.has_written()) {
    options_.on_start();
    const absl::Status begun =
        co_await options_.writer.Write(Encode(StartBefore(update)));
    // What ends well is told so, though a drain has ended it meanwhile.
    if (!begun.ok() && !is_last) co_return begun;
  }
  const absl::Status status = co_await options_.writer.Write(Encode(update));
  // No round follows whose call would go before it.
  if (is_last) CallQueue::RunWhatWaits();
  co_return status;
}

GenerationUpdate WriterSink::StartBefore(const GenerationUpdate& first) const {
  GenerationUpdate update = options_.start;
  GenerationStart& start = *update.start;
  if (first.round.has_value()) {
    start.num_cached_prompt_tokens = static_cast<int>(std::min<int64_t>(
        first.round->verifier.num_reused, start.prompt_length));
  }
  return update;
}

}  // namespace outrider
