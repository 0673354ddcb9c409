// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
#define OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "outrider/v1/generation.pb.h"

namespace outrider {

// Messages of a stream that its client has not read yet, the first of which is
// being written. Their addresses stay until they are popped. Not thread-safe.
class ResponseQueue {
 public:
  // No more rounds are run while so much is in it (faults.md rule 14).
  static constexpr int kMaxTokens = 256;
  static constexpr size_t kMaxBytes = 64 << 10;

  void Push(v1::GenerateResponse response) {
    num_tokens_ += response.tokens_size();
    num_bytes_ += response.ByteSizeLong();
    responses_.push_back(std::move(response));
  }
  void Pop() {
    num_tokens_ -= responses_.front().tokens_size();
    num_bytes_ -= responses_.front().ByteSizeLong();
    responses_.pop_front();
  }
  const v1::GenerateResponse& front() const { return responses_.front(); }
  size_t size() const { return responses_.size(); }
  bool empty() const { return responses_.empty(); }
  bool has_room() const {
    return num_tokens_ < kMaxTokens && num_bytes_ < kMaxBytes;
  }

 private:
  std::deque<v1::GenerateResponse> responses_;
  int num_tokens_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GRPC_RESPONSE_QUEUE_H_
