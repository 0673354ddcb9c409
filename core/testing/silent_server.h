// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SILENT_SERVER_H_
#define OUTRIDER_CORE_TESTING_SILENT_SERVER_H_

#include <string>
#include <thread>

namespace outrider::testing {

// Accepts one connection, which must come, says what HTTP/2 begins with, and
// nothing ever after.
class SilentServer {
 public:
  SilentServer();
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  ~SilentServer();

  const std::string& address() const { return address_; }

 private:
  const int listener_;
  int connection_ = -1;
  std::string address_;
  std::thread thread_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SILENT_SERVER_H_
