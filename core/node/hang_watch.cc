// SPDX-License-Identifier: Apache-2.0
#include "core/node/hang_watch.h"

#include <cstdlib>
#include <stop_token>

#include "core/base/log.h"
#include "core/base/stoppable_sleep.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPeriod(200);
constexpr std::chrono::seconds kHealthIsTold(1);

}  // namespace

HangWatch::HangWatch(const NodeEngine& engine, RpcServer& server,
                     std::chrono::seconds max_pass)
    : engine_(engine), server_(server), max_pass_(max_pass) {
  if (max_pass.count() == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (SleepUnlessStopped(kPeriod, stop)) {
      if (IsHung()) EndProcess();
    }
  });
}

void HangWatch::AwaitPass() const {
  if (max_pass_.count() == 0) return;
  while (engine_.pass_start().has_value()) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

bool HangWatch::IsHung() const {
  const auto start = engine_.pass_start();
  return start.has_value() && Clock::now() > *start + max_pass_;
}

void HangWatch::EndProcess() {
  OUTRIDER_LOG(kError) << "the device hangs, and this node serves no more: a "
                          "pass has taken more than "
                       << max_pass_.count() << " s (--max-pass-seconds)";
  server_.SetServing(false);
  std::this_thread::sleep_for(kHealthIsTold);  // in which health is told
  std::_Exit(EXIT_FAILURE);
}

}  // namespace outrider
