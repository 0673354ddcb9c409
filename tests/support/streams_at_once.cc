// SPDX-License-Identifier: Apache-2.0
#include "tests/support/streams_at_once.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>

namespace outrider::testing {

void GenerateInOrder(
    client::GenerationClient& client,
    const std::vector<client::GenerationRequest>& requests,
    const std::function<void(size_t, client::GenerationStream&)>& read) {
  std::deque<std::unique_ptr<client::GenerationStream>> running;
  size_t num_begun = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const size_t end = std::min(requests.size(), i + kStreamsAtOnce);
    for (; num_begun < end; ++num_begun) {
      running.push_back(
          client.Generate(requests[num_begun], std::chrono::minutes(3)));
    }
    read(i, *running.front());
    running.pop_front();
  }
}

}  // namespace outrider::testing
