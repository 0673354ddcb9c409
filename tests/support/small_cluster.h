// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_SMALL_CLUSTER_H_
#define OUTRIDER_TESTS_SUPPORT_SMALL_CLUSTER_H_

#include <atomic>
#include <functional>
#include <latch>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/generation_client.h"
#include "client/generation_request.h"
#include "core/base/token.h"
#include "core/wire/generation_update.h"
#include "tests/support/in_process_cluster.h"

namespace outrider::testing {

inline constexpr int kVocab = 50;
// Prompts that begin with it give NaN rows.
inline constexpr TokenId kPoison = 49;

// Hashed models of kVocab words (hash_model.h), and a context of 512.
InProcessCluster::Options SmallCluster();

// What came out of one stream.
struct Result {
  absl::Status status = absl::OkStatus();
  TokenSeq tokens = {};
  std::vector<GeneratedToken> scored = {};  // the same
  int num_accepted = 0;
  int num_more = 0;    // of plain runs, beyond one token each
  int last_index = 0;  // first_index of the last message
  std::optional<GenerationStart> start = {};
  std::optional<GenerationFinish> finish = {};
};

Result Drain(client::GenerationStream& stream);
// Runs the request to its end.
Result Generate(InProcessCluster& cluster, client::GenerationRequest request);
// Runs it again, for a minute at most, until more than so many drafts were
// accepted: a stream does not wait for a drafter that gets no time to run.
Result GenerateWithDrafts(InProcessCluster& cluster,
                          const client::GenerationRequest& request,
                          int more_than = 0);

// Runs streams with drafts at a cluster of its own, once a process. The first
// calls of a process take long under the thread sanitizer, which then reads the
// names for its list of false alarms: to a test these are a node that is late.
void HaveFirstStreams();

// A place on this verifier, as one more of its sessions. It must end before the
// cluster does.
Seat<VerifierNode> SitAt(InProcessCluster& cluster, const LocalNode& verifier);

// Calls `act`, where it is set, once: when the table is asked for the row
// number `round`. From another node's table it may end a node.
TableLm::Table ActInRound(TableLm::Table table, int round,
                          std::function<void()>& act);

// Holds a stream in a round, for as long as a test wants: give Wait to
// ActInRound.
class Hold {
 public:
  void Wait() {
    reached_.count_down();
    released_.wait();
  }
  void AwaitStream() { reached_.wait(); }
  void Release() { released_.count_down(); }

 private:
  std::latch reached_{1};
  std::latch released_{1};
};

// Streams do not wait for drafters; for a test of what happens in rounds with
// drafts, the target waits at its tenth token until the drafter is filled.
class DrafterFirst {
 public:
  TableLm::Table Around(TableLm::Table table);
  // Called once no stream runs. The drafter must live while a stream waits,
  // which is for ten seconds at most: the test has failed then.
  void Watch(InProcessCluster& cluster) {
    cluster_ = &cluster;
    is_over_ = false;
  }

 private:
  void Await();

  std::atomic<InProcessCluster*> cluster_ = nullptr;
  std::atomic<bool> is_over_ = false;
};

client::GenerationRequest Greedy(TokenSeq prompt, int num_tokens, int k);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_SMALL_CLUSTER_H_
