// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_SCRIPTED_GENERATION_SERVICE_H_
#define OUTRIDER_CLIENT_SCRIPTED_GENERATION_SERVICE_H_

#include <grpcpp/server.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/wire/generation_update.h"
#include "outrider/v1/generation.grpc.pb.h"

namespace outrider::client {

// A coordinator for tests, which says what it was told to say, on a port of its
// own. Thread-safe once it serves.
class ScriptedGenerationService final : public v1::GenerationService::Service {
 public:
  struct Script {
    std::vector<GenerationUpdate> updates = {};
    // Says nothing more after the updates until the caller has gone.
    bool waits_for_cancel = false;
    grpc::Status status = grpc::Status::OK;
    // What Describe says; absent: a verifier alone, demo-target.
    std::optional<v1::GenerationServiceDescribeResponse> deployment = {};
  };

  explicit ScriptedGenerationService(Script script);

  const std::string& address() const { return address_; }
  // What the last Generate asked for.
  v1::GenerateRequest last_request() const;
  std::vector<v1::GenerateRequest> requests() const;  // all of them, in order

  grpc::Status Generate(
      grpc::ServerContext* context, const v1::GenerateRequest* request,
      grpc::ServerWriter<v1::GenerateResponse>* writer) override;
  grpc::Status Describe(
      grpc::ServerContext* context,
      const v1::GenerationServiceDescribeRequest* request,
      v1::GenerationServiceDescribeResponse* response) override;

 private:
  const Script script_;
  mutable Mutex mu_;
  std::vector<v1::GenerateRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;  // last: ends before what it serves
};

// A script's parts. Tokens have ids counted from first_index, and one letter
// of text each.
// Seed 2^64 - 3, a prompt of 5, K = 2, a model, a salt.
GenerationUpdate StartUpdate();
GenerationUpdate TokensUpdate(int first_index,
                              const std::vector<TokenOrigin>& origins);
GenerationUpdate FinishUpdate(const std::string& trailing_text = "");
// Two rounds of K = 2: two accepted and a bonus; a refusal and a replacement.
ScriptedGenerationService::Script TwoRounds();

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_SCRIPTED_GENERATION_SERVICE_H_
