// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_CHANNEL_H_
#define OUTRIDER_CORE_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "core/rpc/keepalive.h"

namespace outrider {

struct ChannelOptions {
  // The largest message we accept; gRPC's own limit of 4 MiB is less than K = 8
  // rows of a 128k vocabulary.
  int max_receive_bytes = 64 << 20;
  // See MakeChannelCredentials; null is plain text, and so is a socket file.
  std::shared_ptr<grpc::ChannelCredentials> credentials = {};
  // The name that the server's certificate must have, where `address` is an
  // address that a name was resolved to; empty: the address's own host.
  std::string server_name = {};
  Keepalive keepalive = {};
};

// A channel with our settings: keepalive, quick reconnects, and no
// retries by gRPC (a lost reply must not run a handler twice unasked). Check
// the address with CheckEndpoint first.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ChannelOptions& options = {});

// False from when the connection breaks until the next call has restored it.
bool IsConnected(grpc::Channel& channel);

// Called first in main: switches off gRPC's own log lines, which repeat what
// statuses say, and the search for deadlocks in its mutexes.
void SetUpGrpc();

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_CHANNEL_H_
