// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/server_process.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"

namespace outrider {

std::string Listeners::Next() {
  if (folder_.empty()) return "127.0.0.1:0";
  return absl::StrCat("unix:", folder_, "/", num_++);
}

ServerProcess::ServerProcess(const Serve& serve, const std::string& listen)
    : process_([&](const ForkedFunction::End& end) {
        SetUpGrpc();
        const Served served = serve(listen);
        end.Send(served.address);
        while (true) pause();
      }),
      address_(process_.end().Receive()) {}

}  // namespace outrider
