// SPDX-License-Identifier: Apache-2.0
// Health checking (grpc.health.v1) and reflection as any gRPC tool sees them.
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "coordinator/service/readiness.h"
#include "core/rpc/channel.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;
// A message of any type: its fields are the unknown ones of an empty message.
using AnyMessage = google::protobuf::Empty;
using AnyStub = grpc::TemplatedGenericStub<AnyMessage, AnyMessage>;

// grpc.health.v1.HealthCheckResponse.ServingStatus; here also: no such service.
constexpr int kServing = 1;
constexpr int kNotServing = 2;
constexpr int kUnknownService = -1;

google::protobuf::UnknownFieldSet& FieldsOf(AnyMessage& message) {
  return *message.GetReflection()->MutableUnknownFields(&message);
}

// grpc.health.v1.Health.Check of one name at one address.
int CheckHealth(const std::string& address, const std::string& service) {
  AnyStub stub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  AnyMessage request;
  FieldsOf(request).AddLengthDelimited(1, service);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  AnyMessage response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  if (status.error_code() == grpc::NOT_FOUND) return kUnknownService;
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto& fields = FieldsOf(response);
  return fields.empty() ? 0 : static_cast<int>(fields.field(0).varint());
}

// What ServerReflectionInfo answers to list_services, as bytes.
std::string ListServices(const std::string& address) {
  AnyStub stub(MakeChannel(address));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
  void* tag = nullptr;
  bool ok = false;
  const auto call = stub.PrepareCall(
      &context,
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  AnyMessage request;
  FieldsOf(request).AddLengthDelimited(7, "*");
  call->Write(request, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  AnyMessage response;
  call->Read(&response, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return response.SerializeAsString();
}

class HealthTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { RpcServer::BlockTerminationSignals(); }

  static InProcessCluster::Options WithoutVerifier() {
    const TableLm::Options model = {.table =
                                        [](absl::Span<const TokenId> context) {
                                          return HashTarget(context, kVocab);
                                        },
                                    .vocab_size = kVocab,
                                    .context_length = 512};
    return {.target = model, .draft = model, .start_verifier = false};
  }

  // Polls, as probes do.
  static bool Becomes(const std::string& address, const std::string& service,
                      int wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (CheckHealth(address, service) != wanted) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }
};

TEST_F(HealthTest, ACoordinatorServesWhileAVerifierDoesAndLivesThroughout) {
  InProcessCluster cluster(WithoutVerifier());
  const std::string& address = cluster.server().address();
  std::promise<absl::StatusOr<int>> ended;
  std::jthread readiness([&] {
    ended.set_value(ServeUntilTermination(cluster.pool(), cluster.server(),
                                          /*require_drafter=*/false));
  });
  for (const char* service : {"", "readiness"}) {
    EXPECT_EQ(CheckHealth(address, service), kNotServing) << service;
  }
  EXPECT_EQ(CheckHealth(address, "liveness"), kServing);
  EXPECT_EQ(CheckHealth(address, "no such name"), kUnknownService);

  cluster.StartVerifier();
  EXPECT_TRUE(Becomes(address, "", kServing));
  EXPECT_TRUE(Becomes(address, "readiness", kServing));
  cluster.StopVerifier();
  EXPECT_TRUE(Becomes(address, "", kNotServing));
  EXPECT_TRUE(Becomes(address, "readiness", kNotServing));
  EXPECT_EQ(CheckHealth(address, "liveness"), kServing);

  pthread_kill(readiness.native_handle(), SIGTERM);
  const absl::StatusOr<int> signal = ended.get_future().get();
  ASSERT_THAT(signal, IsOk());
  EXPECT_EQ(*signal, SIGTERM);
}

TEST_F(HealthTest, ARefusedDrafterEndsACoordinatorThatRequiresOne) {
  InProcessCluster::Options options = WithoutVerifier();
  options.start_verifier = true;
  options.drafter_tokenizer_hash = "another";
  InProcessCluster cluster(options);
  EXPECT_THAT(
      ServeUntilTermination(cluster.pool(), cluster.server(),
                            /*require_drafter=*/true)
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("--require-drafter: the drafter's tokenizer")));
}

// One wrong drafter behind a name would end every coordinator that has it.
TEST_F(HealthTest, ARefusedDrafterEndsNoCoordinatorThatHasServed) {
  InProcessCluster::Options options = WithoutVerifier();
  options.start_verifier = true;
  InProcessCluster cluster(options);
  const std::string& address = cluster.server().address();
  std::promise<absl::StatusOr<int>> promise;
  auto ended = promise.get_future();
  std::jthread readiness([&] {
    promise.set_value(ServeUntilTermination(cluster.pool(), cluster.server(),
                                            /*require_drafter=*/true));
  });
  EXPECT_TRUE(Becomes(address, "", kServing));
  cluster.StopDrafter();
  cluster.StartDrafter(/*tokenizer_hash=*/"another");
  while (cluster.pool().CheckDrafters().ok()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(1)),
            std::future_status::timeout);
  EXPECT_EQ(CheckHealth(address, ""), kServing);
  if (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    pthread_kill(readiness.native_handle(), SIGTERM);
  }
  EXPECT_THAT(ended.get(), IsOk());
}

TEST_F(HealthTest, NodesServeFromTheirStart) {
  InProcessCluster::Options options = WithoutVerifier();
  options.start_verifier = true;
  InProcessCluster cluster(options);
  for (const std::string& address :
       {cluster.drafter().address(), cluster.verifier().address()}) {
    for (const char* service : {"", "readiness", "liveness"}) {
      EXPECT_EQ(CheckHealth(address, service), kServing) << service;
    }
  }
}

TEST_F(HealthTest, ReflectionListsTheServicesOfEachRole) {
  InProcessCluster::Options options = WithoutVerifier();
  options.start_verifier = true;
  InProcessCluster cluster(options);
  EXPECT_THAT(ListServices(cluster.server().address()),
              HasSubstr("outrider.v1.GenerationService"));
  for (const auto& [address, service] :
       {std::pair(cluster.drafter().address(), "outrider.v1.DrafterService"),
        std::pair(cluster.verifier().address(),
                  "outrider.v1.VerifierService")}) {
    const std::string services = ListServices(address);
    EXPECT_THAT(services, HasSubstr(service));
    EXPECT_THAT(services, HasSubstr("outrider.v1.CacheService"));
    EXPECT_THAT(services, HasSubstr("grpc.health.v1.Health"));
  }
}

}  // namespace
}  // namespace outrider::testing
