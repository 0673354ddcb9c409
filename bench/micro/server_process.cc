// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/server_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/rpc/channel.h"

namespace outrider {

std::string Listeners::Next() {
  if (folder_.empty()) return "127.0.0.1:0";
  return absl::StrCat("unix:", folder_, "/", num_++);
}

ServerProcess::ServerProcess(const Serve& serve, const std::string& listen) {
  int ends[2];
  OUTRIDER_CHECK(pipe(ends) == 0);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    SetUpGrpc();
    const Served served = serve(listen);
    OUTRIDER_CHECK(
        write(ends[1], served.address.c_str(), served.address.size() + 1) > 0);
    while (true) pause();
  }
  close(ends[1]);
  for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\0';) address_ += c;
  close(ends[0]);
  OUTRIDER_CHECK(!address_.empty());
}

}  // namespace outrider
