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
  // No more rounds are run while so much is in it, of tokens or of memory: an
  // eighth of what a stream may cost a coordinator whose client does not read.
  // Its connection and its call take most of the rest, and what is on its way
  // to a client that reads is in gRPC's windows, which are larger.
  static constexpr int kMaxTokens = 256;
  static constexpr size_t kMaxBytes = 8 << 10;

  void Push(EncodedResponse response) {
    num_tokens_ += response.num_tokens;
    num_bytes_ += MemoryOf(response);
    queue_.push_back(std::move(response));
  }
  void Pop() {
    num_tokens_ -= queue_.front().num_tokens;
    num_bytes_ -= MemoryOf(queue_.front());
    queue_.pop_front();
  }
  const std::string& front() const { return queue_.front().bytes; }
  size_t size() const { return queue_.size(); }
  bool empty() const { return queue_.empty(); }
  bool has_room() const {
    return num_tokens_ < kMaxTokens && num_bytes_ < kMaxBytes;
  }

 private:
  // A short message takes less than its place.
  static size_t MemoryOf(const EncodedResponse& response) {
    return sizeof(response) + response.bytes.capacity();
  }

  std::deque<EncodedResponse> queue_;
  int num_tokens_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
