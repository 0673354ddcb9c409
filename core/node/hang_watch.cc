// SPDX-License-Identifier: Apache-2.0
#include "core/node/hang_watch.h"

#include <cstdlib>
#include <stop_token>

#include "core/base/log.h"
#include "core/base/stoppable_sleep.h"
#include "core/node/pass_timer.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPeriod(200);
constexpr std::chrono::seconds kHealthIsTold(1);

}  // namespace

HangWatch::HangWatch(Node& node, RpcServer& server,
                     std::chrono::seconds max_pass)
    : node_(node), server_(server), max_pass_(max_pass) {
  if (max_pass.count() == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    PassTimer timer(2 * kPeriod);
    while (SleepUnlessStopped(kPeriod, stop)) {
      const auto start = node_.engine().pass_start();
      if (!start.has_value()) continue;
      if (timer.Look(*start, Clock::now()) > max_pass_) EndUnlessOver(*start);
    }
  });
}

void HangWatch::AwaitPass() const {
  if (max_pass_.count() == 0) return;
  while (node_.engine().pass_start().has_value()) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void HangWatch::EndUnlessOver(Clock::time_point start) {
  OUTRIDER_LOG(kError) << "the device hangs, and this node serves no more: a "
                          "pass has taken more than "
                       << max_pass_.count() << " s (--max-pass-seconds)";
  server_.SetServing(false);
  std::this_thread::sleep_for(kHealthIsTold);  // in which health is told
  if (node_.engine().pass_start() == start) std::_Exit(EXIT_FAILURE);
  OUTRIDER_LOG(kWarning) << "the pass has ended: the device does not hang";
  // Whoever wants it to serve no more says so to the node, then to the server.
  // So one of the two looks at the node sees it, or the server hears it last.
  if (WantsToServe()) server_.SetServing(true);
  if (!WantsToServe()) server_.SetServing(false);
}

bool HangWatch::WantsToServe() const {
  return !node_.counters().draining && !node_.is_lost();
}

}  // namespace outrider
