// SPDX-License-Identifier: Apache-2.0
// Streams whose verifier answers what nobody asked for, over real gRPC: that is
// the verifier's failure, so they go on at another, and no token changes.
#include <grpcpp/client_context.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/rpc/channel.h"
#include "core/rpc/deadline.h"
#include "core/testing/status_matchers.h"
#include "core/wire/packing.h"
#include "gtest/gtest.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using Lie = std::function<void(v1::VerifyResponse&)>;

constexpr int kLiedToLength = 60;
constexpr int kLiedToDrafts = 4;
constexpr TokenId kUnknownToken = kVocab;

// Hands each call on to a true verifier, and may change what that answers.
class LyingVerifier final : public v1::VerifierService::Service {
 public:
  LyingVerifier() {
    SetUpGrpc();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~LyingVerifier() override {
    server_->Shutdown(DeadlineAfter(std::chrono::seconds(0)));
  }

  const std::string& address() const { return address_; }
  void AskInstead(const std::string& address) {
    MutexLock lock(mu_);
    truth_ = v1::VerifierService::NewStub(MakeChannel(address));
  }
  // It counts the replies that are no misses, and lies in all from this one on.
  void LieFrom(int first, Lie lie) {
    MutexLock lock(mu_);
    lie_ = std::move(lie);
    num_true_ = first - 1;
    num_lies_ = 0;
  }
  int num_lies() const { return num_lies_; }

 private:
  grpc::Status Verify(grpc::ServerContext* /*context*/,
                      const v1::VerifyRequest* request,
                      v1::VerifyResponse* response) override {
    const grpc::Status status =
        HandOn(&v1::VerifierService::Stub::Verify, *request, *response);
    if (!status.ok() || response->has_miss()) return status;
    MutexLock lock(mu_);
    if (--num_true_ >= 0 || !lie_) return status;
    ++num_lies_;
    lie_(*response);
    return status;
  }
  grpc::Status Isolate(grpc::ServerContext* /*context*/,
                       const v1::IsolateRequest* request,
                       v1::IsolateResponse* response) override {
    return HandOn(&v1::VerifierService::Stub::Isolate, *request, *response);
  }
  grpc::Status Describe(
      grpc::ServerContext* /*context*/,
      const v1::VerifierServiceDescribeRequest* request,
      v1::VerifierServiceDescribeResponse* response) override {
    return HandOn(&v1::VerifierService::Stub::Describe, *request, *response);
  }

  template <typename Method, typename Request, typename Response>
  grpc::Status HandOn(Method method, const Request& request,
                      Response& response) {
    const std::shared_ptr<v1::VerifierService::Stub> truth = GetTruth();
    if (truth == nullptr) return {grpc::StatusCode::UNAVAILABLE, "not yet"};
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(std::chrono::seconds(20)));
    return (truth.get()->*method)(&context, request, &response);
  }
  std::shared_ptr<v1::VerifierService::Stub> GetTruth() const {
    MutexLock lock(mu_);
    return truth_;
  }

  mutable Mutex mu_;
  std::shared_ptr<v1::VerifierService::Stub> truth_ ABSL_GUARDED_BY(mu_);
  Lie lie_ ABSL_GUARDED_BY(mu_);
  int num_true_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> num_lies_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

struct NamedLie {
  std::string name;
  ReplyFormat format;
  Lie lie;
};

// They are, in each format, what no message of it may be, what does not fit the
// call, or what does not fit the verifier's own description.
std::vector<NamedLie> Lies() {
  using enum ReplyFormat;
  return {
      {"nothing at all", kTokens, [](auto& reply) { reply.clear_verdict(); }},
      {"a count beyond integers", kTokens,
       [](auto& reply) { reply.mutable_verdict()->set_num_accepted(~0U); }},
      {"more than was drafted", kTokens,
       [](auto& reply) {
         reply.mutable_verdict()->set_num_accepted(kLiedToDrafts + 1);
       }},
      {"more than it may go on with", kTokens,
       [](auto& reply) {
         for (int i = 0; i < 100; ++i) reply.add_more_tokens(1);
       }},
      {"an unknown token", kTokens,
       [](auto& reply) {
         reply.mutable_verdict()->set_next_token(kUnknownToken);
       }},
      {"another format", kSparse,
       [](auto& reply) { reply.mutable_verdict()->set_next_token(1); }},
      {"half a number", kSparse,
       [](auto& reply) {
         reply.mutable_sparse()->mutable_rows(0)->set_probabilities("odd");
       }},
      {"a row too few", kSparse,
       [](auto& reply) {
         reply.mutable_sparse()->mutable_rows()->RemoveLast();
       }},
      {"no distribution", kSparse,
       [](auto& reply) {
         v1::TargetRows& rows = *reply.mutable_sparse();
         rows.mutable_rows(rows.rows_size() - 1)->set_tail_mass(0.5);
       }},
      {"an unknown tail", kSparse,
       [](auto& reply) {
         v1::TargetRows& rows = *reply.mutable_sparse();
         rows.mutable_rows(rows.rows_size() - 1)->set_tail_token(kUnknownToken);
       }},
      {"rows cut short", kFull,
       [](auto& reply) { reply.mutable_full()->mutable_logits()->pop_back(); }},
      {"NaN", kFull,
       [](auto& reply) {
         v1::FullRows& rows = *reply.mutable_full();
         const size_t num_values = rows.logits().size() / sizeof(float);
         rows.set_logits(PackFloat32(std::vector<double>(
             num_values, std::numeric_limits<double>::quiet_NaN())));
       }},
      {"one row of more tokens", kFull,
       [](auto& reply) {
         v1::FullRows& rows = *reply.mutable_full();
         rows.set_vocab_size(rows.vocab_size() * rows.num_rows());
         rows.set_num_rows(1);
       }},
      {"the reply to another call", kTokens,
       [](auto& reply) {
         reply.mutable_header()->set_step(reply.header().step() + 1);
       }},
  };
}

class LyingVerifierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.more_verifiers = {liar_.address()};
    cluster_.emplace(options_);
    liar_.AskInstead(cluster_->verifier().address());
    ASSERT_TRUE(cluster_->WaitUntilReady());
    // Streams begin at the liar, as the other has sessions already.
    for (auto& seat : seats_) seat = SitAt(*cluster_, cluster_->verifier());
  }
  // The stream of plain decoding, at whatever verifiers.
  void ExpectPlain(ReplyFormat format) {
    client::GenerationRequest request =
        Greedy({5}, kLiedToLength, kLiedToDrafts);
    request.reply_format = format;
    const Result result = Generate(*cluster_, request);
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, kLiedToLength, kVocab));
  }
  int64_t NumMoves() {
    int64_t num_moves = 0;
    for (const auto& moves : cluster_->pool().moves().of_verifiers) {
      num_moves += moves;
    }
    return num_moves;
  }
  // A place on the liar, if there is one.
  Seat<VerifierNode> SitAtLiar() {
    const auto is_it = [this](const VerifierNode& node,
                              const NodeDescription&) {
      return node.link.address == liar_.address();
    };
    return cluster_->pool().ChooseVerifier({}, is_it).seat;
  }

  LyingVerifier liar_;
  InProcessCluster::Options options_ = SmallCluster();
  std::optional<InProcessCluster> cluster_;
  std::vector<Seat<VerifierNode>> seats_{4};
};

TEST_F(LyingVerifierTest, AStreamGoesOnAtAnotherWhateverTheLie) {
  for (const NamedLie& lie : Lies()) {
    SCOPED_TRACE(lie.name);
    const int64_t num_moves = NumMoves();
    liar_.LieFrom(/*first=*/3, lie.lie);
    ExpectPlain(lie.format);
    EXPECT_GE(liar_.num_lies(), 1);
    EXPECT_GT(NumMoves(), num_moves);
  }
}

// Each pause of a breaker is longer than the one before, so that a slow machine
// meets one, too.
TEST_F(LyingVerifierTest, OpeningsGoToAnotherAndItsBreakerOpens) {
  const Seat<VerifierNode> liar = SitAtLiar();
  ASSERT_NE(liar, nullptr);
  seats_.push_back(SitAt(*cluster_, cluster_->verifier()));
  liar_.LieFrom(/*first=*/1, [](v1::VerifyResponse& reply) {
    reply.mutable_verdict()->set_num_accepted(~0U);
  });
  const auto deadline = CircuitBreaker::Clock::now() + std::chrono::seconds(60);
  while (liar->breaker.WouldAllow(CircuitBreaker::Clock::now())) {
    ASSERT_LT(CircuitBreaker::Clock::now(), deadline);
    ExpectPlain(ReplyFormat::kTokens);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GE(liar_.num_lies(), 3);
}

}  // namespace
}  // namespace outrider::testing
