// SPDX-License-Identifier: Apache-2.0
#include "bench/load/load_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "client/scripted_generation_service.h"
#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using client::ScriptedGenerationService;
using ::outrider::testing::IsOk;
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

// Requests with these many prompts, for as long as there are any.
LoadResult Generate(const ScriptedGenerationService& service, const Load& load,
                    int num_prompts, Cancellation& cancellation) {
  client::GenerationClient client(service.address());
  const std::vector<Prompt> prompts(num_prompts, TokenSeq{1});
  return GenerateLoad(client, prompts,
                      {.load = load, .duration = std::chrono::hours(1)},
                      cancellation);
}

TEST(LoadGeneratorTest, EachPromptIsARequest) {
  for (const Load& load :
       {Load{.concurrency = 4}, Load{.concurrency = 0, .rate = 1000}}) {
    const ScriptedGenerationService service(client::TwoRounds());
    Cancellation cancellation;
    const LoadResult result =
        Generate(service, load, /*num_prompts=*/20, cancellation);
    EXPECT_EQ(result.requests.size(), 20U);
    EXPECT_TRUE(result.ran_out_of_prompts);
    for (const RequestResult& request : result.requests) {
      EXPECT_THAT(request.status, IsOk());
    }
  }
}

TEST(LoadGeneratorTest, ACancellationEndsWhatIsUnderWayAndWhatIsYetToCome) {
  ScriptedGenerationService::Script script = client::TwoRounds();
  script.waits_for_cancel = true;
  for (const Load& load :
       {Load{.concurrency = 3}, Load{.concurrency = 0, .rate = 1000}}) {
    const ScriptedGenerationService service(script);
    Cancellation cancellation;
    const std::jthread cancel([&service, &cancellation] {
      while (service.requests().size() < 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      cancellation.Cancel();
    });
    const LoadResult result =
        Generate(service, load, /*num_prompts=*/2000, cancellation);
    EXPECT_GE(result.requests.size(), 3U);
    EXPECT_FALSE(result.ran_out_of_prompts);
  }
}

}  // namespace
}  // namespace outrider::bench
