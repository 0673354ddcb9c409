// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_FORKED_FUNCTION_H_
#define OUTRIDER_BENCH_MICRO_FORKED_FUNCTION_H_

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "bench/network/socket.h"

namespace outrider {

// A function that runs in a process of its own, at most until this one ends,
// and a pipe both ways between them, for addresses. Forked before any thread
// exists.
class ForkedFunction {
 public:
  // One end of the pipe.
  class End {
   public:
    explicit End(bench::Socket socket) : socket_(std::move(socket)) {}

    void Send(const std::string& address) const;
    // Blocks until the other end has sent one, which it must.
    std::string Receive() const;

   private:
    bench::Socket socket_;
  };

  explicit ForkedFunction(absl::FunctionRef<void(const End& end)> act);

  const End& end() const { return end_; }

 private:
  End end_;
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_FORKED_FUNCTION_H_
