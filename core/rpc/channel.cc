// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/channel.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

#include "absl/synchronization/mutex.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/metadata_limits.h"

namespace outrider {
namespace {

// So long an attempt to connect may take, or one that always takes longer would
// never succeed: TLS takes three round trips, of 200 ms each far away, and the
// time of a node that is busy. It is less than a node is given to say what it
// is: who finds nobody at an address is to know that, and not that it is late.
constexpr std::chrono::milliseconds kConnectTime(900);

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_receive_bytes);
  arguments.SetMaxSendMessageSize(-1);
  // A peer that is out of its mind must not fill this process (see server.cc).
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                   1 << GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // The proxies of http_proxy are for the web: they are no way to a node.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(options.keepalive.quiet.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(options.keepalive.answer.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxTransportMetadataBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 400);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(kConnectTime.count()));
  if (!options.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.server_name);
  }
  // The channel keeps its credentials, as they have to outlive it.
  struct Kept {
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    std::shared_ptr<grpc::Channel> channel;
  };
  const auto kept = std::make_shared<Kept>();
  kept->credentials = options.credentials != nullptr && !IsUnixSocket(address)
                          ? options.credentials
                          : grpc::InsecureChannelCredentials();
  kept->channel =
      grpc::CreateCustomChannel(address, kept->credentials, arguments);
  return {kept, kept->channel.get()};
}

bool IsConnected(grpc::Channel& channel) {
  return channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

void SetUpGrpc() {
  // Debian's Abseil is built with its debugging aids: each lock of a mutex
  // would be entered into a graph to look for deadlocks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_verbosity(
      static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
}

}  // namespace outrider
