// SPDX-License-Identifier: Apache-2.0
#include "bench/load/load_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

// Where new threads would have stacks for which there is no room.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, size_t{1} << 50);
    pthread_setattr_default_np(&huge);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;
  ~NoNewThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

TEST(LoadGeneratorTest, WhoeverGetsNoThreadIsARequestThatFailed) {
  client::GenerationClient client("127.0.0.1:1");  // nobody calls it
  const std::vector<Prompt> prompts(3, TokenSeq{1});
  Cancellation cancellation;
  for (const Load& load :
       {Load{.concurrency = 2}, Load{.concurrency = 0, .rate = 1000}}) {
    const NoNewThreads limited;
    const LoadResult result = GenerateLoad(
        client, prompts, {.load = load, .duration = std::chrono::seconds(1)},
        cancellation);
    EXPECT_GE(result.requests.size(), 2U);
    for (const RequestResult& request : result.requests) {
      EXPECT_THAT(request.status, StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("cannot start a thread")));
    }
  }
}

}  // namespace
}  // namespace outrider::bench
