// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

namespace outrider {

// A message as it goes over the wire: else it takes several times as much
// memory.
struct EncodedResponse {
  std::string bytes = {};
  int num_tokens = 0;
};

// Messages of a stream that its client has not read yet, the first of which is
// being written. Its address stays until it is popped. Not thread-safe.
class ResponseQueue {
 public:
  // No more rounds are run while so much is in it: a quarter of what a stream
  // may cost a coordinator whose client does not read. Its connection, its call
  // and its session take most of the rest.
  static constexpr int kMaxTokens = 256;
  static constexpr size_t kMaxBytes = 16 << 10;

  void Push(EncodedResponse response) {
    num_tokens_ += response.num_tokens;
    num_bytes_ += response.bytes.size();
    queue_.push_back(std::move(response));
  }
  void Pop() {
    num_tokens_ -= queue_.front().num_tokens;
    num_bytes_ -= queue_.front().bytes.size();
    queue_.pop_front();
  }
  const std::string& front() const { return queue_.front().bytes; }
  size_t size() const { return queue_.size(); }
  bool empty() const { return queue_.empty(); }
  bool has_room() const {
    return num_tokens_ < kMaxTokens && num_bytes_ < kMaxBytes;
  }

 private:
  std::deque<EncodedResponse> queue_;
  int num_tokens_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
