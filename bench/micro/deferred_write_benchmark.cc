// SPDX-License-Identifier: Apache-2.0
// What it is worth that a verdict's tokens go to the client after the next
// round's call has gone to the verifier (CallQueue::Afterwards). One stream of
// rounds without drafts, by the coordinator's own decoder and writer; turns of
// rounds that write first and of rounds that write afterwards take each other's
// place in it. Verifier and client are processes of their own, on loopback. A
// pass of the verifier reads so many MiB, as it would its weights: caches that
// it shares with the coordinator are cold then, as far as these exceed them.
//   build/release/bin/deferred_write_benchmark [--seconds S] [--weights-mib M]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/micro/figures.h"
#include "bench/micro/forked_function.h"
#include "bench/micro/round_client.h"
#include "bench/micro/server_process.h"
#include "bench/micro/simulated_nodes.h"
#include "client/generation_client.h"
#include "coordinator/service/grpc_response_writer.h"
#include "core/base/check.h"
#include "core/base/flag_checks.h"
#include "core/base/freed_memory.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/rpc_service.h"
#include "core/rpc/server.h"
#include "core/wire/generation_convert.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// So many rounds write in one way before the next so many do in the other.
constexpr int kTurn = 50;

// Waits to be told a coordinator, and reads one of its streams to the end.
void ReadStream(const ForkedFunction::End& end) {
  const std::string address = end.Receive();
  SetUpGrpc();
  client::GenerationClient client(address);
  const auto stream =
      client.Generate({.prompt = TokenSeq{1}}, std::chrono::hours(2));
  while (true) {
    const auto update = stream->Next();
    OUTRIDER_CHECK(update.ok()) << update.status();
    if (!update->has_value()) return;
  }
}

enum class Way { kFirst, kAfterwards };

// Serves one stream for so long, and times its rounds: from the start of one to
// the start of the next, its tokens written or about to be.
class TimedStream final : public RpcService {
 public:
  TimedStream(RoundClient& client, CallQueue& queue,
              std::chrono::seconds period)
      : client_(client), queue_(queue), period_(period) {}

  std::vector<RpcMethod> Methods() override {
    return {{.path = "/outrider.v1.GenerationService/Generate",
             .handle = [this](ServerCall& call) {
               StartDetached(Serve(ResponseWriter::For(
                   call, {.queue = queue_}, std::make_shared<Cancellation>())));
             }}};
  }

  void AwaitEnd() { end_.get_future().get(); }
  const Figures& first() const { return first_; }
  const Figures& afterwards() const { return afterwards_; }

 private:
  Task<void> Serve(ResponseWriter& writer) {
    const Clock::time_point end = Clock::now() + period_;
    const GenerationUpdate start = {.start = GenerationStart{}};
    co_await Write(writer, start);
    do {
      co_await Turn(writer, Way::kFirst, first_);
      co_await Turn(writer, Way::kAfterwards, afterwards_);
    } while (Clock::now() < end && HasRoom());
    const GenerationUpdate finish = {.finish = GenerationFinish{}};
    co_await Write(writer, finish);
    CallQueue::RunWhatWaits();
    co_await writer.FinishAfterWrites(grpc::Status::OK);
    end_.set_value();
  }

  // A session holds some 2^20 tokens, one a round.
  bool HasRoom() const {
    return client_.session().length() + 4 * kTurn < kSimulatedContext;
  }

  // The first rounds of a turn still have the other way's writes before them.
  Task<void> Turn(ResponseWriter& writer, Way way, Figures& figures) {
    for (int i = -kTurn / 10; i < kTurn; ++i) {
      const Clock::time_point begin = Clock::now();
      co_await client_.Round();
      const GenerationUpdate token = LastToken();
      co_await Write(writer, token);
      if (way == Way::kFirst) CallQueue::RunWhatWaits();
      const std::chrono::duration<double, std::micro> time =
          Clock::now() - begin;
      if (i >= 0) figures.us.push_back(time.count());
    }
  }

  static Task<void> Write(ResponseWriter& writer,
                          const GenerationUpdate& update) {
    const absl::Status written =
        co_await writer.Write(ResponseWriter::Encode(ToProto(update)));
    OUTRIDER_CHECK(written.ok()) << written;
  }

  // What the last round gave.
  GenerationUpdate LastToken() const {
    const auto tokens = client_.session().committed().tokens();
    return {.first_index = static_cast<int>(tokens.size()) - 2,
            .tokens = {{.id = tokens.back()}}};
  }

  RoundClient& client_;
  CallQueue& queue_;
  const std::chrono::seconds period_;
  std::promise<void> end_;
  Figures first_;
  Figures afterwards_;
};

void Run(std::chrono::seconds period, int weights_mib) {
  Listeners listeners;
  const ServerProcess drafter(ServeSimulatedDrafter, listeners.Next());
  const ServerProcess verifier(
      [&](const auto& listen) {
        return ServeSimulatedVerifier(listen, PassThatReads(weights_mib));
      },
      listeners.Next());
  const ForkedFunction reader(ReadStream);
  SetUpGrpc();
  CallQueue queue(/*num_threads=*/1);
  RoundClient client(
      {.drafter = drafter.address(), .verifier = verifier.address()}, /*k=*/0,
      queue);
  TimedStream stream(client, queue, period);
  const auto coordinator =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&stream}, queue);
  OUTRIDER_CHECK(coordinator.ok()) << coordinator.status();
  reader.end().Send((*coordinator)->address());
  stream.AwaitEnd();

  std::printf("%-52s %8s %8s\n", "us", "p50", "p99");
  Print("rounds that write first", stream.first());
  Print("rounds that write afterwards", stream.afterwards());
  std::printf(
      "\nIn medians a round that writes its tokens after the next call takes "
      "%.3f times\none that writes them first (K = 0, passes that read %d "
      "MiB).\n",
      stream.afterwards().p50() / stream.first().p50(), weights_mib);
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) try {
  CLI::App app("What it is worth to write tokens after the next call.");
  int seconds = 20;
  app.add_option("--seconds", seconds, "how long to measure")
      ->check(outrider::WholeNumberIn(1, 3600))
      ->capture_default_str();
  int weights_mib = 4;
  app.add_option("--weights-mib", weights_mib, "what a pass reads")
      ->check(outrider::WholeNumberIn(0, 4096))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // As nodes do, and those here are forked from this process. A coordinator's
  // program only bounds its heaps.
  outrider::KeepFreedMemory();
  outrider::Run(std::chrono::seconds(seconds), weights_mib);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
