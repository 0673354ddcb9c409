// SPDX-License-Identifier: Apache-2.0
// What the verifier's reply formats cost: protobuf bytes and time of a round
// over loopback gRPC, for large vocabularies and K = 1 .. 16, all formats in
// the same run. Drafter, verifier and coordinator are the production code; the
// models are tables, so that what is left of a round's time is the wire and the
// acceptance. Run by hand: build/release/bin/reply_formats_benchmark [--quick]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "coordinator/draft_length_policy.h"
#include "coordinator/grpc_draft_stub.h"
#include "coordinator/grpc_verify_stub.h"
#include "coordinator/node_draft_client.h"
#include "coordinator/node_verify_client.h"
#include "coordinator/session.h"
#include "coordinator/speculative_decoder.h"
#include "core/base/check.h"
#include "core/base/task.h"
#include "core/model/causal_lm.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/sampling/rejection.h"
#include "drafter/model_strategy.h"
#include "tests/integration/in_process_cluster.h"

namespace outrider::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSupportSize = 32;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// Starts the task and blocks until it is done, on whatever thread.
absl::StatusOr<Verdict> Await(Task<absl::StatusOr<Verdict>> task) {
  std::promise<absl::StatusOr<Verdict>> done;
  const auto finish =
      [](Task<absl::StatusOr<Verdict>> awaited,
         std::promise<absl::StatusOr<Verdict>>& result) -> Task<void> {
    result.set_value(co_await std::move(awaited));
  };
  StartDetached(finish(std::move(task), done));
  return done.get_future().get();
}

// A few rows of logits; the one behind a token is chosen by the token. As fast
// as a copy: what a round takes beside it is the wire and the acceptance.
class TableModel final : public CausalLm {
 public:
  using Rows = std::vector<std::vector<float>>;

  explicit TableModel(const Rows& rows)
      : rows_(rows),
        info_({.vocab_size = static_cast<int>(rows[0].size()),
               .context_length = 1 << 20}) {}

  const ModelInfo& info() const override { return info_; }
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override {
    std::vector<absl::StatusOr<LogitRows>> all;
    for (const Extension& extension : batch) {
      std::vector<float> logits;
      logits.reserve(extension.num_rows * rows_[0].size());
      for (const TokenId token : extension.tokens.last(extension.num_rows)) {
        const std::vector<float>& row = rows_[token % rows_.size()];
        logits.insert(logits.end(), row.begin(), row.end());
      }
      all.push_back(LogitRows::FromVector(std::move(logits), info_.vocab_size));
    }
    return all;
  }
  void Release(const SessionId&) override {}

 private:
  const Rows& rows_;
  const ModelInfo info_;
};

// Rows with the tail of natural text, p(rank) ~ 1 / rank^2, and a drafter that
// agrees with them to about 0.8.
class TablePair {
 public:
  explicit TablePair(int vocab_size) {
    std::mt19937 generator(17);
    std::normal_distribution<float> noise(0, 1.0f);
    for (int i = 0; i < 32; ++i) {
      std::vector<float> row(vocab_size);
      for (int rank = 0; rank < vocab_size; ++rank) {
        row[rank] = -2 * std::log(static_cast<float>(rank + 1));
      }
      std::shuffle(row.begin(), row.end(), generator);
      std::vector<float> draft = row;
      for (float& logit : draft) logit += noise(generator);
      target_.push_back(std::move(row));
      draft_.push_back(std::move(draft));
    }
  }

  const TableModel::Rows& target() const { return target_; }
  const TableModel::Rows& draft() const { return draft_; }

 private:
  TableModel::Rows target_;
  TableModel::Rows draft_;
};

// Notes when the reply is there: what follows is acceptance.
class TimedStub final : public VerifyStub {
 public:
  explicit TimedStub(VerifyStub& stub) : stub_(stub) {}

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) override {
    absl::StatusOr<VerifyReply> reply =
        co_await stub_.Verify(call, cancellation);
    replied_ = Clock::now();
    co_return reply;
  }
  Clock::time_point replied() const { return replied_; }

 private:
  VerifyStub& stub_;
  Clock::time_point replied_;
};

// A pair of nodes on loopback, and what the coordinator needs to call them.
class Pair {
 public:
  explicit Pair(int vocab_size)
      : tables_(vocab_size),
        drafter_(
            std::make_unique<DraftEngine>(
                std::make_unique<ModelStrategy>(
                    std::make_unique<TableModel>(tables_.draft()), vocab_size),
                DraftEngine::Options{.vocab_size = vocab_size,
                                     .context_length = 1 << 20}),
            {}, "127.0.0.1:0"),
        verifier_(std::make_unique<VerifyEngine>(
                      std::make_unique<TableModel>(tables_.target()),
                      VerifyEngine::Options{.vocab_size = vocab_size}),
                  {}, "127.0.0.1:0"),
        draft_stub_(MakeChannel(drafter_.address()),
                    StubOptions<GrpcDraftStub>()),
        verify_stub_(
            MakeChannel(verifier_.address(), {.max_receive_bytes = 1 << 30}),
            StubOptions<GrpcVerifyStub>()) {
    draft_stub_.set_vocab_size(vocab_size);
    verify_stub_.set_vocab_size(vocab_size);
  }

  DraftStub& draft_stub() { return draft_stub_; }
  VerifyStub& verify_stub() { return verify_stub_; }

 private:
  template <typename Stub>
  typename Stub::Options StubOptions() {
    return {.queue = queue_,
            .timeout = std::chrono::seconds(60),
            .timeout_per_token = std::chrono::milliseconds(1)};
  }

  const TablePair tables_;
  DrafterNodeUnderTest drafter_;
  VerifierNodeUnderTest verifier_;
  CallQueue queue_{/*num_threads=*/1};
  GrpcDraftStub draft_stub_;
  GrpcVerifyStub verify_stub_;
};

struct Setting {
  const char* name;
  ReplyFormat format;
  double temperature;
};

constexpr Setting kSettings[] = {
    {"rejection FULL", ReplyFormat::kFull, 1},
    {"rejection SPARSE", ReplyFormat::kSparse, 1},
    {"rejection TOKENS", ReplyFormat::kTokens, 1},
    {"greedy    TOKENS", ReplyFormat::kTokens, 0},
};

void PrintRow(Pair& pair, const Setting& setting, int k, int num_rounds) {
  Session session({.prompt = {1},
                   .sampling = {.temperature = setting.temperature},
                   .seed = 7,
                   .max_length = 1 << 20});
  NodeDraftClient drafter(pair.draft_stub(), {.context_length = 1 << 20,
                                              .support_size = kSupportSize});
  TimedStub timed(pair.verify_stub());
  NodeVerifyClient verifier(timed, setting.format);
  const RejectionRule rule;
  FixedDraftLength policy(k);
  SpeculativeDecoder decoder({.drafter = drafter,
                              .verifier = verifier,
                              .rule = rule,
                              .policy = policy});
  std::vector<double> wire_ms;
  std::vector<double> acceptance_us;
  int64_t drafter_bytes = 0;
  int64_t verifier_bytes = 0;
  int num_tokens = 0;
  for (int round = -2; round < num_rounds; ++round) {  // two warm up
    const auto verdict = Await(decoder.Round(session));
    OUTRIDER_CHECK(verdict.ok()) << verdict.status();
    const double acceptance = SecondsSince(timed.replied());
    if (round < 0) continue;
    const RoundStats& stats = session.stats();
    wire_ms.push_back(1e3 *
                      (stats.round_seconds - stats.drafter.compute_seconds -
                       stats.verifier.compute_seconds));
    acceptance_us.push_back(1e6 * acceptance);
    drafter_bytes += stats.drafter.wire_bytes;
    verifier_bytes += stats.verifier.wire_bytes;
    num_tokens += verdict->num_accepted + 1;
  }
  std::printf("%3d  %s  %9.0f  %11.0f  %6.2f  %11.1f  %8.3f  %10.1f\n", k,
              setting.name, static_cast<double>(drafter_bytes) / num_rounds,
              static_cast<double>(verifier_bytes) / num_rounds,
              static_cast<double>(num_tokens) / num_rounds,
              static_cast<double>(drafter_bytes + verifier_bytes) / num_tokens,
              Median(std::move(wire_ms)), Median(std::move(acceptance_us)));
  std::fflush(stdout);
}

void Run(bool quick) {
  SetUpGrpc();
  const int num_rounds = quick ? 8 : 40;
  const std::vector<int> all = {1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16};
  const std::vector<int> few = {1, 5, 16};
  for (const int vocab_size : {32'000, 128'256, 152'064}) {
    std::printf(
        "\nV = %d, N = %d. Bytes are protobuf's, both directions; wire ms is a "
        "round less the\nnodes' compute, acceptance us what follows the "
        "verifier's reply (medians).\n\n"
        "  K  rule      format  drafter B   verifier B  tokens  bytes/token   "
        "wire ms  acceptance\n",
        vocab_size, kSupportSize);
    Pair pair(vocab_size);
    for (const int k : quick ? few : all) {
      for (const Setting& setting : kSettings) {
        PrintRow(pair, setting, k, num_rounds);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::testing

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "usage: reply_formats_benchmark [--quick]\n");
    return 2;
  }
  outrider::testing::Run(quick);
  return 0;
}
