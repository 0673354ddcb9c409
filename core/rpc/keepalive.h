// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_KEEPALIVE_H_
#define OUTRIDER_CORE_RPC_KEEPALIVE_H_

#include <chrono>

namespace outrider {

// When a connection whose other end says nothing is given up: it is pinged
// after so long without a byte, and has so long to answer.
struct Keepalive {
  std::chrono::milliseconds quiet = std::chrono::seconds(5);
  std::chrono::milliseconds answer = std::chrono::seconds(2);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_KEEPALIVE_H_
