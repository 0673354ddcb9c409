// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/http_endpoint.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/telemetry/limited_stream.h"

namespace outrider {
namespace {

// A connection holds a thread until it is served or late. Those that are slow
// must not keep a probe waiting: many threads, which cost little while they
// sleep, and little patience, even less while others wait.
constexpr size_t kNumThreads = 32;

// 200 while it holds, else 503, in JSON.
httplib::Server::Handler Page(std::function<bool()> holds, std::string what) {
  return [holds = std::move(holds), what = std::move(what)](
             const httplib::Request&, httplib::Response& reply) {
    const bool yes = holds();
    reply.status = yes ? 200 : 503;
    reply.set_content(
        absl::StrCat("{\"status\":\"", yes ? "" : "not ", what, "\"}\n"),
        "application/json");
  };
}

// Threads, and how many connections have one or wait for one.
class CountingPool final : public httplib::ThreadPool {
 public:
  explicit CountingPool(std::atomic<size_t>& num_open)
      : ThreadPool(kNumThreads), num_open_(num_open) {}
  void enqueue(std::function<void()> serve) override {
    ++num_open_;
    ThreadPool::enqueue([this, serve = std::move(serve)] {
      serve();
      --num_open_;
    });
  }

 private:
  std::atomic<size_t>& num_open_;
};

// Serves one request of each connection, within its limits.
class LimitedServer final : public httplib::Server {
 public:
  LimitedServer() {
    new_task_queue = [this] { return new CountingPool(num_open_); };
  }

 private:
  bool process_and_close_socket(int socket) override {
    LimitedStream stream(socket, {},
                         [this] { return num_open_ > kNumThreads; });
    bool is_closed = false;
    const bool is_served = process_request(stream, /*close_connection=*/true,
                                           is_closed, /*setup_request=*/{});
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return is_served;
  }

  std::atomic<size_t> num_open_ = 0;
};

}  // namespace

struct HttpEndpoint::Server {
  LimitedServer http;
  int listener = -1;
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(
    Options options) {
  const size_t colon = options.listen.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(options.listen.substr(colon + 1), &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat("HTTP needs HOST:PORT, not \"", options.listen, "\""));
  }
  std::string host = options.listen.substr(0, colon);
  std::string bare = host;
  if (bare.size() > 2 && bare.front() == '[') {
    bare = bare.substr(1, bare.size() - 2);
  }

  auto server = std::make_unique<Server>();
  httplib::Server& http = server->http;
  // The library's own default lets two processes share a port.
  http.set_socket_options([&listener = server->listener](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    listener = socket;
  });
  http.set_payload_max_length(0);
  http.Get("/metrics", [metrics = std::move(options.metrics)](
                           const httplib::Request&, httplib::Response& reply) {
    reply.set_content(metrics(), "text/plain; version=0.0.4; charset=utf-8");
  });
  http.Get("/health", Page(std::move(options.serving), "serving"));
  http.Get("/live", Page(std::move(options.alive), "alive"));

  if (port == 0) {
    port = http.bind_to_any_port(bare);
  } else if (!http.bind_to_port(bare, port)) {
    port = -1;
  }
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen for HTTP on ", options.listen,
                     ": the port is in use, or the address is not of this "
                     "machine; port 0 picks a free one"));
  }
  // The library lets five connections wait to be accepted: others that come at
  // the same moment would try again a second later.
  listen(server->listener, SOMAXCONN);
  server->thread = std::thread([&http] { http.listen_after_bind(); });
  // stop() does nothing before the thread listens.
  while (!http.is_running()) std::this_thread::yield();
  return std::unique_ptr<HttpEndpoint>(
      new HttpEndpoint(std::move(server), absl::StrCat(host, ":", port)));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server, std::string address)
    : server_(std::move(server)), address_(std::move(address)) {}

HttpEndpoint::~HttpEndpoint() {
  server_->http.stop();
  server_->thread.join();
}

}  // namespace outrider
