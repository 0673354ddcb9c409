// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TELEMETRY_HTTP_ENDPOINT_H_
#define OUTRIDER_CORE_TELEMETRY_HTTP_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outrider {

// Serves three pages over HTTP, on threads of its own: /metrics in the
// Prometheus text format; /health, which is 200 {"status":"serving"} or 503
// {"status":"not serving"}; and /live, the same of "alive", which stays while a
// program drains. No page has prompts, tokens or addresses in it, so it is
// plain text wherever it listens.
class HttpEndpoint {
 public:
  struct Options {
    std::string listen = {};  // HOST:PORT, port 0 picks a free one
    std::function<std::string()> metrics = {};  // thread-safe, as is
    std::function<bool()> serving = {};         // this one
    std::function<bool()> alive = {};           // and this
  };

  // UNAVAILABLE: it cannot be listened on, such as a port in use.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(Options options);
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;
  ~HttpEndpoint();

  // HOST:PORT with the port that was picked.
  const std::string& address() const { return address_; }

 private:
  struct Server;

  HttpEndpoint(std::unique_ptr<Server> server, std::string address);

  const std::unique_ptr<Server> server_;
  const std::string address_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TELEMETRY_HTTP_ENDPOINT_H_
