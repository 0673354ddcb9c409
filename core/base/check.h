// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_CHECK_H_
#define OUTRIDER_CORE_BASE_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace outrider::internal {

// Collects the message of a failed check, prints it, ends the process.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    message_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure() {
    std::cerr << message_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Makes both branches of the macro void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace outrider::internal

// OUTRIDER_CHECK is for invariants of our own code only: what a peer, a file or
// a flag can cause is an absl::Status. It is prefixed, as torch and newer gRPC
// bring a CHECK each.
#define OUTRIDER_CHECK(condition)                                              \
  (condition)                                                                  \
      ? (void)0                                                                \
      : ::outrider::internal::Voidify() &                                      \
            ::outrider::internal::CheckFailure(__FILE__, __LINE__, #condition) \
                .stream()

#endif  // OUTRIDER_CORE_BASE_CHECK_H_
