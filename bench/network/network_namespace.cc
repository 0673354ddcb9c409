// SPDX-License-Identifier: Apache-2.0
#include "bench/network/network_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/network/system_error.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace outrider::bench {
namespace {

constexpr absl::string_view kNamespaceCapability = "CAP_SYS_ADMIN";

absl::StatusOr<Socket> OpenOwn() {
  Socket file(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return SystemError("open this network namespace", kNamespaceCapability);
  }
  return file;
}

absl::Status BringLoopbackUp() {
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (ioctl(socket.fd(), SIOCSIFFLAGS, &request) != 0) {
    return SystemError("bring loopback up", kNamespaceCapability);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NetworkNamespace> NetworkNamespace::Create() {
  OUTRIDER_ASSIGN_OR_RETURN(Socket before, OpenOwn());
  if (unshare(CLONE_NEWNET) != 0) {
    return SystemError("make a network namespace", kNamespaceCapability);
  }
  absl::StatusOr<Socket> made = OpenOwn();
  const absl::Status up = BringLoopbackUp();
  // Only what was entered a moment ago is left: nothing but a bug makes it
  // fail.
  OUTRIDER_CHECK(setns(before.fd(), CLONE_NEWNET) == 0);
  OUTRIDER_RETURN_IF_ERROR(made.status());
  OUTRIDER_RETURN_IF_ERROR(up);
  return NetworkNamespace(*std::move(made));
}

absl::StatusOr<NetworkNamespace> NetworkNamespace::Current() {
  OUTRIDER_ASSIGN_OR_RETURN(Socket file, OpenOwn());
  return NetworkNamespace(std::move(file));
}

absl::StatusOr<ScopedNamespace> ScopedNamespace::Enter(
    const NetworkNamespace& space) {
  OUTRIDER_ASSIGN_OR_RETURN(Socket before, OpenOwn());
  if (setns(space.fd(), CLONE_NEWNET) != 0) {
    return SystemError("enter a network namespace", kNamespaceCapability);
  }
  return ScopedNamespace(std::move(before));
}

ScopedNamespace::~ScopedNamespace() {
  if (!before_.is_open()) return;  // moved from
  OUTRIDER_CHECK(setns(before_.fd(), CLONE_NEWNET) == 0);
}

}  // namespace outrider::bench
