// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_OWN_LOOPBACK_H_
#define OUTRIDER_CORE_TESTING_OWN_LOOPBACK_H_

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outrider::testing {

// A free port at an address of 127.0.0.0/8 that is this process's own, for
// --listen. Tests that stop a node and count on its port need it: on 127.0.0.1
// the node of a test that runs beside may take the port meanwhile, and answer.
inline std::string OwnLoopback() {
  const unsigned int pid = getpid();  // below 2^22
  return absl::StrCat("127.", 1 + (pid >> 16), ".", pid >> 8 & 255, ".",
                      pid & 255, ":0");
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_OWN_LOOPBACK_H_
