// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_SERVER_PROCESS_H_
#define OUTRIDER_BENCH_MICRO_SERVER_PROCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "bench/micro/forked_function.h"

namespace outrider {

// What serves as long as `server` lives.
struct Served {
  std::string address = {};
  std::shared_ptr<void> server = {};
};
// Serves at the address.
using Serve = std::function<Served(const std::string& listen)>;

// Where the next one listens: on loopback, or at a socket file of the folder.
class Listeners {
 public:
  explicit Listeners(std::string folder = "") : folder_(std::move(folder)) {}
  std::string Next();

 private:
  const std::string folder_;
  int num_ = 0;
};

// A process of its own that serves until this one ends. Forked before any
// thread exists; returns when it serves.
class ServerProcess {
 public:
  ServerProcess(const Serve& serve, const std::string& listen);

  const std::string& address() const { return address_; }

 private:
  ForkedFunction process_;
  std::string address_;
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_SERVER_PROCESS_H_
