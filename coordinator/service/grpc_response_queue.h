// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

// Messages of a stream that its client has not read yet, the first of which is
// being written. Its address stays until it is popped. The others wait as the
// bytes that they will be, as messages take several times as much memory. Not
// thread-safe.
class ResponseQueue {
 public:
  // No more rounds are run while so much is in it: a quarter of what a stream
  // may cost a coordinator whose client does not read. Its connection, its call
  // and its session take most of the rest.
  static constexpr int kMaxTokens = 256;
  static constexpr size_t kMaxBytes = 16 << 10;

  void Push(v1::GenerateResponse response) {
    Waiting next = {.num_tokens = response.tokens_size(),
                    .num_bytes = response.ByteSizeLong()};
    num_tokens_ += next.num_tokens;
    num_bytes_ += next.num_bytes;
    if (queue_.empty()) {
      first_ = std::move(response);
    } else {
      next.bytes = response.SerializeAsString();
    }
    queue_.push_back(std::move(next));
  }
  void Pop() {
    num_tokens_ -= queue_.front().num_tokens;
    num_bytes_ -= queue_.front().num_bytes;
    queue_.pop_front();
    first_ = {};
    if (queue_.empty()) return;
    OUTRIDER_CHECK(first_.ParseFromString(queue_.front().bytes));
    queue_.front().bytes = {};
  }
  const v1::GenerateResponse& front() const { return first_; }
  size_t size() const { return queue_.size(); }
  bool empty() const { return queue_.empty(); }
  bool has_room() const {
    return num_tokens_ < kMaxTokens && num_bytes_ < kMaxBytes;
  }

 private:
  struct Waiting {
    int num_tokens = 0;
    size_t num_bytes = 0;
    std::string bytes = {};  // none of the first one
  };

  v1::GenerateResponse first_;
  std::deque<Waiting> queue_;
  int num_tokens_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
