// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_NETWORK_H_
#define OUTRIDER_TESTS_SIMULATION_NETWORK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tests/simulation/fault.h"
#include "tests/support/event_loop.h"

namespace outrider::testing {

// Carries messages between sessions and nodes, with what goes wrong on the way.
// Each takes a time of its own, so they overtake each other. A fault is of a
// message by its number: without it all others fare as before.
class Network {
 public:
  // How a message arrives: as itself, or where another one is waited for.
  enum class Arrival { kOwn, kCrossed };
  using Arrive = std::function<void(Arrival)>;

  Network(EventLoop& loop, uint64_t seed, absl::Span<const Fault> faults)
      : loop_(loop), seed_(seed) {
    for (const Fault& fault : faults) {
      if (fault.kind == Fault::Kind::kEcho) {
        echoes_.push_back(fault);
      } else if (fault.is_of_message()) {
        faults_[fault.at].push_back(fault);
      }
    }
  }

  void ToNode(int node, Arrive arrive) {
    Send(deaf_until_[node] > loop_.now(), /*is_reply=*/false,
         std::move(arrive));
  }
  void FromNode(int node, Arrive arrive) {
    Send(dumb_until_[node] > loop_.now(), /*is_reply=*/true, std::move(arrive));
  }
  void Deafen(int node, EventLoop::Clock::duration time) {
    deaf_until_[node] = loop_.now() + time;
  }
  void Silence(int node, EventLoop::Clock::duration time) {
    dumb_until_[node] = loop_.now() + time;
  }
  int64_t num_messages() const { return num_messages_; }

 private:
  void Send(bool is_lost, bool is_reply, Arrive arrive) {
    const int64_t number = num_messages_++;
    EventLoop::Clock::duration delay =
        std::chrono::microseconds(500 + HashOf(seed_ + 1, number) % 2000);
    Arrival arrival = Arrival::kOwn;
    for (const Fault& fault : faults_[number]) {
      using Kind = Fault::Kind;
      is_lost = is_lost || fault.kind == Kind::kDrop;
      if (fault.kind == Kind::kDelay) delay += fault.time;
      if (fault.kind == Kind::kDuplicate) {
        loop_.After(delay + fault.time, [arrive] { arrive(Arrival::kOwn); });
      }
      if (fault.kind == Kind::kCross && is_reply) {
        delay += fault.time;
        arrival = Arrival::kCrossed;
      }
    }
    for (const Fault& echo : echoes_) {
      if (number < echo.at) continue;
      loop_.After(delay + echo.time, [arrive] { arrive(Arrival::kOwn); });
    }
    if (is_lost) return;
    loop_.After(delay,
                [arrive = std::move(arrive), arrival] { arrive(arrival); });
  }

  EventLoop& loop_;
  const uint64_t seed_;
  std::map<int64_t, std::vector<Fault>> faults_;  // by the message's number
  std::vector<Fault> echoes_;
  std::map<int, EventLoop::Clock::time_point> deaf_until_;
  std::map<int, EventLoop::Clock::time_point> dumb_until_;
  int64_t num_messages_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_NETWORK_H_
