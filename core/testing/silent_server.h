// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SILENT_SERVER_H_
#define OUTRIDER_CORE_TESTING_SILENT_SERVER_H_

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace outrider::testing {

// Accepts connections one by one, says to each, after a time, what HTTP/2
// begins with, and nothing ever after.
class SilentServer {
 public:
  explicit SilentServer(std::chrono::milliseconds before_it_speaks = {});
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  ~SilentServer();

  const std::string& address() const { return address_; }

 private:
  void Accept(std::chrono::milliseconds before_it_speaks);

  const int listener_;
  std::vector<int> connections_;  // of the thread until that has ended
  std::string address_;
  std::thread thread_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SILENT_SERVER_H_
