// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATION_CLIENT_H_
#define OUTRIDER_CLIENT_GENERATION_CLIENT_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/generation_request.h"
#include "core/rpc/keepalive.h"
#include "core/rpc/tls_files.h"
#include "core/wire/generation_update.h"
#include "core/wire/node_description.h"

namespace outrider::client {

class GenerationClient;

// One running generation: call Next until it yields nothing, or fails. Confined
// to one thread, but for Cancel. Destroying it cancels the call.
class GenerationStream {
 public:
  struct Call;  // the gRPC side

  GenerationStream(GenerationRequest request, std::unique_ptr<Call> call);
  GenerationStream(const GenerationStream&) = delete;
  GenerationStream& operator=(const GenerationStream&) = delete;
  ~GenerationStream();

  // Blocks for the next message, less the tokens that were delivered before;
  // nothing after the last one. Fails as the RPC does, and with INTERNAL where
  // the stream breaks its own rules (a gap in the indices, an end without
  // `finish`); it is over then.
  absl::StatusOr<std::optional<GenerationUpdate>> Next();

  // Ends the generation: Next fails with CANCELLED, and for no other reason.
  // Thread-safe.
  void Cancel();

  // The request that continues after what Next has delivered, on this or
  // another coordinator.
  GenerationRequest ResumeRequest() const;

 private:
  friend class GenerationClient;

  void Start();
  // Checks and drops indices, and remembers what a resume needs.
  absl::Status Take(GenerationUpdate& update);
  void Abandon();

  GenerationRequest request_;
  TokenSeq delivered_;
  bool started_ = false;
  bool finished_ = false;
  std::atomic<bool> is_cancelled_ = false;
  std::unique_ptr<Call> call_;
};

// The pair behind a coordinator.
struct Deployment {
  std::vector<NodeDescription> verifiers = {};
  std::vector<NodeDescription> drafters = {};
  std::vector<std::string> refused_verifiers = {};  // and why
  std::vector<std::string> refused_drafters = {};
  bool has_tokenizer = false;
};

// Calls one coordinator. Thread-safe; may be destroyed before its streams.
class GenerationClient {
 public:
  // HOST:PORT, in plain text without an authority: check it with CheckEndpoint
  // first. Connects on the first call.
  explicit GenerationClient(const std::string& coordinator,
                            const TlsFiles& tls = {},
                            const Keepalive& keepalive = {});
  GenerationClient(const GenerationClient&) = delete;
  GenerationClient& operator=(const GenerationClient&) = delete;
  ~GenerationClient();

  // Starts a generation that may take `timeout` altogether. Never fails: what
  // is wrong, the stream's first Next says. It may block until there is a
  // connection, or none.
  std::unique_ptr<GenerationStream> Generate(GenerationRequest request,
                                             std::chrono::milliseconds timeout);
  // The same, but the call starts with the first Next, which Cancel ends then.
  std::unique_ptr<GenerationStream> Prepare(GenerationRequest request,
                                            std::chrono::milliseconds timeout);

  absl::StatusOr<Deployment> Describe(std::chrono::milliseconds timeout);

 private:
  friend class GenerationStream;
  struct Stub;

  const std::string coordinator_;
  const TlsFiles tls_;
  const std::shared_ptr<Stub> stub_;
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATION_CLIENT_H_
