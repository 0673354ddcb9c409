// SPDX-License-Identifier: Apache-2.0
// What a round costs beside its models: rounds of the production code with
// nodes that take no time, K = 4 and K = 0, one user, and beside them in the
// same run bare echoes of the bytes of the same calls, by gRPC's fastest ways
// to serve one: the callback API, and a completion queue that one thread polls.
// Drafter, verifier and echoes are processes of their own on loopback. Rounds
// and echoes take turns, so that the machine's moods meet all of them. Run by
// hand: build/release/bin/round_overhead_benchmark [--seconds S]
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/micro/alone_verify_stub.h"
#include "bench/micro/grpc_echo.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/pool/grpc_draft_stub.h"
#include "coordinator/pool/grpc_verify_stub.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/base/check.h"
#include "core/base/task.h"
#include "core/model/simulated_lm.h"
#include "core/node/local_node.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/sampling/make_rule.h"
#include "drafter/drafter_service.h"
#include "verifier/verifier_service.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kVocabSize = 256;
constexpr int kContextLength = 1 << 20;
constexpr int kDraftTokens = 4;
// Of one kind, before the next has its turn.
constexpr int kTurn = 100;

NodeDescription Description() {
  return {.vocab_size = kVocabSize,
          .context_length = kContextLength,
          .max_draft_tokens = kDraftTokens};
}

// A process of its own that serves until this one ends. Forked before any
// thread exists.
class ServerProcess {
 public:
  explicit ServerProcess(const std::function<Served()>& serve) {
    int ends[2];
    OUTRIDER_CHECK(pipe(ends) == 0);
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      SetUpGrpc();
      const Served served = serve();
      OUTRIDER_CHECK(write(ends[1], served.address.c_str(),
                           served.address.size() + 1) > 0);
      while (true) pause();
    }
    close(ends[1]);
    from_ = ends[0];
  }

  // Waits until it serves.
  std::string address() const {
    std::string address;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\0';) address += c;
    OUTRIDER_CHECK(!address.empty());
    return address;
  }

 private:
  int from_ = -1;
};

template <typename MakeService>
Served ServeNode(MakeService make_service) {
  auto node = std::make_shared<LocalNode>(
      std::make_unique<SimulatedLm>(
          SimulatedLm::Options{.vocab_size = kVocabSize,
                               .context_length = kContextLength,
                               .sleep_until = [](auto) {}}),
      Description(),
      [&](Node& made) { return make_service(made, Description()); },
      LocalNode::Options{
          .scheduling = {.sessions = {.num_blocks = kContextLength / 8}}});
  return {.address = node->address(), .server = node};
}

// Awaits so many, one after the other, and notes what each took. The end is
// noted where it ends, on the queue's thread, as waking the thread that waits
// for all of them is no part of it.
void TimeEach(int count, const std::function<Task<void>()>& act,
              std::vector<double>& us) {
  std::promise<void> done;
  const auto run = [](int num, const std::function<Task<void>()>& once,
                      std::vector<double>& times,
                      std::promise<void>& end) -> Task<void> {
    for (int i = 0; i < num; ++i) {
      const Clock::time_point begin = Clock::now();
      co_await once();
      const std::chrono::duration<double, std::micro> time =
          Clock::now() - begin;
      times.push_back(time.count());
    }
    end.set_value();
  };
  StartDetached(run(count, act, us, done));
  done.get_future().get();
}

// One user's rounds, one after the other.
class RoundClient {
 public:
  struct Addresses {
    std::string drafter;
    std::string verifier;
  };

  RoundClient(const Addresses& addresses, int k, CallQueue& queue)
      : queue_(queue),
        draft_stub_(MakeChannel(addresses.drafter), StubOptions()),
        verify_stub_(MakeChannel(addresses.verifier), StubOptions()),
        drafter_(draft_stub_, {.context_length = kContextLength}),
        verifier_(alone_, ReplyFormat::kTokens),
        rule_(MakeRule(RuleKind::kRejection, 1)),
        policy_(k),
        decoder_({.drafter = drafter_,
                  .verifier = verifier_,
                  .rule = *rule_,
                  .policy = policy_}),
        session_({.prompt = {1},
                  .sampling = {.temperature = 0},
                  .seed = 7,
                  .max_length = kContextLength}) {
    draft_stub_.set_vocab_size(kVocabSize);
    verify_stub_.set_vocab_size(kVocabSize);
  }

  Task<void> Round() {
    const auto result = co_await decoder_.Round(session_);
    OUTRIDER_CHECK(result.ok()) << result.status();
    stats_ = result->stats;
  }

  CallBytes drafter_bytes() const { return BytesOf(stats_.drafter); }
  CallBytes verifier_bytes() const { return BytesOf(stats_.verifier); }

 private:
  template <typename Stats>
  static CallBytes BytesOf(const Stats& stats) {
    return {.request = stats.sent_bytes,
            .reply = stats.wire_bytes - stats.sent_bytes};
  }
  GrpcNodeOptions StubOptions() {
    return {.queue = queue_,
            .timeout = std::chrono::seconds(60),
            .timeout_per_token = std::chrono::milliseconds(1)};
  }

  CallQueue& queue_;
  GrpcDraftStub draft_stub_;
  GrpcVerifyStub verify_stub_;
  AloneVerifyStub alone_{verify_stub_};
  NodeDraftClient drafter_;
  NodeVerifyClient verifier_;
  const std::unique_ptr<const AcceptanceRule> rule_;
  FixedDraftLength policy_;
  SpeculativeDecoder decoder_;
  Session session_;
  RoundStats stats_ = {};
};

double Percentile(std::vector<double> values, double share) {
  const auto at =
      values.begin() +
      static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

struct Figures {
  std::vector<double> us = {};

  double p50() const { return Percentile(us, 0.5); }
  double p99() const { return Percentile(us, 0.99); }
};

void Print(const std::string& what, const Figures& figures) {
  std::printf("  %-44s %8.1f %8.1f\n", what.c_str(), figures.p50(),
              figures.p99());
}

void Run(int seconds) {
  const ServerProcess drafter([] { return ServeNode(MakeDrafterService); });
  const ServerProcess verifier([] { return ServeNode(MakeVerifierService); });
  const ServerProcess callback_process(ServeCallbackEcho);
  const ServerProcess queue_process(ServeQueueEcho);
  SetUpGrpc();
  // A coordinator serves, too, by the same queue.
  CallQueue queue(/*num_threads=*/1);
  const auto coordinator =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {}, queue);
  OUTRIDER_CHECK(coordinator.ok()) << coordinator.status();
  const RoundClient::Addresses addresses = {.drafter = drafter.address(),
                                            .verifier = verifier.address()};
  RoundClient speculative(addresses, kDraftTokens, queue);
  RoundClient plain(addresses, 0, queue);
  EchoClient callback_echo(callback_process.address(), queue);
  EchoClient queue_echo(queue_process.address(), queue);
  const auto round = [&] { return speculative.Round(); };
  const auto plain_round = [&] { return plain.Round(); };

  std::vector<double> warm_up;
  TimeEach(kTurn, round, warm_up);
  TimeEach(kTurn, plain_round, warm_up);
  const CallBytes calls[] = {speculative.drafter_bytes(),
                             speculative.verifier_bytes(),
                             plain.verifier_bytes()};
  Figures rounds;
  Figures plain_rounds;
  Figures echoes[2][std::size(calls)];
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  for (const CallBytes& bytes : calls) {
    for (EchoClient* echo : {&callback_echo, &queue_echo}) {
      TimeEach(
          kTurn, [&] { return echo->Call(bytes); }, warm_up);
    }
  }
  while (Clock::now() < end) {
    TimeEach(kTurn, round, rounds.us);
    TimeEach(kTurn, plain_round, plain_rounds.us);
    for (size_t call = 0; call < std::size(calls); ++call) {
      for (int way = 0; way < 2; ++way) {
        EchoClient& echo = way == 0 ? callback_echo : queue_echo;
        TimeEach(
            kTurn, [&] { return echo.Call(calls[call]); },
            echoes[way][call].us);
      }
    }
  }

  std::printf("%-46s %8s %8s\n", "us", "p50", "p99");
  Print(absl::StrCat("round, K = ", kDraftTokens), rounds);
  Print("round, K = 0", plain_rounds);
  const char* const names[] = {"Draft", "Verify, K = 4", "Verify, K = 0"};
  double fastest[std::size(calls)];
  for (size_t call = 0; call < std::size(calls); ++call) {
    const std::string what =
        absl::StrCat(names[call], " (", calls[call].request, " + ",
                     calls[call].reply, " B)");
    Print("echo, callback: " + what, echoes[0][call]);
    Print("echo, queue: " + what, echoes[1][call]);
    fastest[call] = std::min(echoes[0][call].p50(), echoes[1][call].p50());
  }
  std::printf(
      "\nA round with K = %d takes %.2f times the fastest echoes of its two "
      "calls;\nwith K = 0 %.2f times that of its one (medians).\n",
      kDraftTokens, rounds.p50() / (fastest[0] + fastest[1]),
      plain_rounds.p50() / fastest[2]);
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app("What a round costs beside its models.");
  int seconds = 20;
  app.add_option("--seconds", seconds, "how long to measure")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  outrider::Run(seconds);
  return 0;
}
