// SPDX-License-Identifier: Apache-2.0
// A node over a model on an emulated GPU that runs out of memory, or is lost.
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda_model/small_model.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "core/node/kv_memory.h"
#include "core/node/local_node.h"
#include "core/node/node.h"
#include "core/node/node_metrics.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "drafter/drafter_service.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "outrider/v1/drafter.grpc.pb.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "verifier/verifier_service.h"

namespace outrider {
namespace {

namespace emulated = kernels::cuda::emulation;
using ::outrider::testing::IsOk;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kNumBlocks = 8;

std::unique_ptr<Node> MakeNode(const CudaLimits& limits = {.capture_time = {}},
                               const BatchScheduler::Options& options = {
                                   .sessions = {.num_blocks = kNumBlocks}}) {
  auto model = MakeSmallModel(limits);
  EXPECT_THAT(model, IsOk());
  EXPECT_THAT((*model)->AllocateKvBlocks(options.sessions.num_blocks), IsOk());
  EXPECT_THAT((*model)->Prepare(), IsOk());
  return std::make_unique<Node>(
      *std::move(model), options,
      NodeDescription{.model_name = "small", .device = "cuda:0"});
}

// A call that opens a session with so many tokens and then runs `num_more`, one
// at a time, each with its whole row.
std::future<absl::Status> Submit(
    Node& node, int num_tokens, int num_more,
    std::function<void(const LogitRows&)> on_take = {}) {
  auto done = std::make_shared<std::promise<absl::Status>>();
  RequestHeader header = {.session = SessionId::Random(), .step = 1};
  header.delta.append_tokens = TokenSeq(num_tokens, 1);
  auto ended = done->get_future();
  node.engine().Submit(std::make_unique<ScriptedWork>(
      Work::Request{.header = header, .num_draft_tokens = num_more},
      ScriptedWork::Script{.num_more = num_more,
                           .on_take =
                               [on_take](const LogitRows& rows) {
                                 EXPECT_EQ(rows.Row(0).size(), 50u);
                                 if (on_take) on_take(rows);
                               },
                           .on_finish =
                               [done](const Ending& ending) {
                                 done->set_value(ending.status);
                               }}));
  return ended;
}

// Prompts of many chunks, each of which is in a pass by itself: the next one is
// launched beside it, whosever it is.
TEST(GpuNodeTest, PassesInFlightLeaveEachPromptItsRows) {
  const std::vector<int> lengths = {70, 90, 50, 110, 64};
  std::vector<std::vector<float>> right;
  {
    auto model = MakeSmallModel();
    ASSERT_THAT(model, IsOk());
    ASSERT_THAT((*model)->AllocateKvBlocks(kNumBlocks), IsOk());
    const std::vector<KvBlockId> table = {0, 1, 2, 3, 4, 5, 6};
    for (const int length : lengths) {
      const TokenSeq tokens(length, 1);
      const auto rows = (*model)->Extend(
          {{.blocks = table, .tokens = tokens, .num_rows = 1}});
      ASSERT_THAT(rows[0], IsOk());
      right.emplace_back(rows[0]->Row(0).begin(), rows[0]->Row(0).end());
    }
  }
  const std::unique_ptr<Node> node =
      MakeNode({.capture_time = {}},
               {.prefill_chunk = 16, .sessions = {.num_blocks = 64}});
  std::vector<std::vector<float>> rows(lengths.size());
  std::vector<std::future<absl::Status>> ends;
  for (size_t i = 0; i < lengths.size(); ++i) {
    ends.push_back(Submit(*node, lengths[i], /*num_more=*/0,
                          [&row = rows[i]](const LogitRows& last) {
                            row.assign(last.Row(0).begin(), last.Row(0).end());
                          }));
  }
  for (auto& end : ends) EXPECT_THAT(end.get(), IsOk());
  EXPECT_EQ(rows, right);
  EXPECT_GT(node->engine().metrics().num_launched_early, 0);
}

// Its memory goes while a session lives: that has all that it needs.
TEST(GpuNodeTest, OutOfMemoryRefusesAnOpeningAndNoLiveSession) {
  const std::unique_ptr<Node> node = MakeNode();
  const size_t before = emulated::AvailableMemory();
  std::future<absl::Status> refused;
  int num_taken = 0;
  auto live = Submit(*node, 20, 6, [&](const LogitRows&) {
    if (++num_taken != 2) return;
    emulated::SetAvailableMemory(0);
    emulated::SetAvailablePinned(0);
    refused = Submit(*node, 100, 0);
  });
  EXPECT_THAT(live.get(), IsOk());
  EXPECT_THAT(refused.get(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(num_taken, 7);
  EXPECT_FALSE(node->is_lost());
  // Whoever comes with less is welcome.
  EXPECT_THAT(Submit(*node, 20, 2).get(), IsOk());
  emulated::SetAvailableMemory(before);
  emulated::SetAvailablePinned(SIZE_MAX / 2);
}

TEST(GpuNodeTest, BlocksAreWhatTheDeviceHasLeftForThem) {
  const size_t before = emulated::AvailableMemory();
  auto model = MakeSmallModel();
  ASSERT_THAT(model, IsOk());
  const int64_t block = (*model)->info().kv_block_bytes;
  emulated::SetAvailableMemory(static_cast<size_t>(100 * block));
  const auto num_blocks =
      SetUpKvBlocks(**model, *ParseKvMemory("auto"), 64, 100000);
  ASSERT_THAT(num_blocks, IsOk());
  EXPECT_GE(*num_blocks, 80);
  EXPECT_LT(*num_blocks, 100);
  EXPECT_LT((*model)->AvailableKvBytes(), 20 * block);
  model->reset();
  emulated::SetAvailableMemory(before);
}

// Graphs take it from the device while the node gets ready to serve.
TEST(GpuNodeTest, GraphsHaveTheirMemoryBeforeBlocksTakeTheRest) {
  const size_t before = emulated::AvailableMemory();
  auto model = MakeSmallModel(
      {.graph_rows = 2, .capture_time = kTimeForGraphs, .spare_bytes = 0});
  ASSERT_THAT(model, IsOk());
  const int64_t block = (*model)->info().kv_block_bytes;
  const DeviceCounters& counters = *(*model)->device_counters();
  const int64_t taken = counters.num_memory_bytes;
  const auto left = static_cast<int64_t>(1000 * block);
  emulated::SetAvailableMemory(static_cast<size_t>(left));
  emulated::SetGraphBytes(static_cast<size_t>(20 * block));
  const auto num_blocks =
      SetUpKvBlocks(**model, *ParseKvMemory("auto"), 64, 100000);
  ASSERT_THAT(num_blocks, IsOk());
  const int64_t graphs = 20 * block * counters.num_graphs;
  EXPECT_GE(counters.num_graphs, 10);
  EXPECT_EQ(*num_blocks, (left - graphs) * 9 / 10 / block);
  EXPECT_EQ(counters.num_memory_bytes - taken, (*num_blocks + 1) * block);
  EXPECT_EQ((*model)->AvailableKvBytes(),
            left - graphs - (*num_blocks + 1) * block);
  model->reset();
  emulated::SetGraphBytes(0);
  emulated::SetAvailableMemory(before);
}

TEST(GpuNodeTest, ALostContextEndsEveryCallAndTheNode) {
  const std::unique_ptr<Node> node = MakeNode();
  EXPECT_THAT(Submit(*node, 20, 1).get(), IsOk());
  emulated::SetFailure("an illegal memory access was encountered");
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(
      Submit(*node, 20, 1).get(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("illegal memory")));
  EXPECT_TRUE(node->is_lost());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the device is lost, and this node serves no more: "
                        "forward pass: an illegal memory access"));
  v1::NodeDescription description;
  EXPECT_THAT(node->Describe(description),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Submit(*node, 20, 1).get(),
              StatusIs(absl::StatusCode::kUnavailable));
}

// A node that serves one of the two, and a call's header that opens a session.
std::unique_ptr<LocalNode> Serve(std::unique_ptr<RpcService> (*make_service)(
    Node&, const NodeDescription&)) {
  auto model = MakeSmallModel({.capture_time = {}});
  EXPECT_THAT(model, IsOk());
  NodeDescription description;
  description.model_name = "small";
  description.device = "cuda:0";
  description.vocab_size = 50;
  description.context_length = 700;
  description.max_draft_tokens = 4;
  description.draft_strategy = "model";
  return std::make_unique<LocalNode>(
      *std::move(model), description,
      [&](Node& node) { return make_service(node, description); },
      LocalNode::Options{.scheduling = {.sessions = {.num_blocks = 16}}});
}
RequestHeader Opening() {
  return {.session = SessionId::Random(),
          .step = 1,
          .delta = {.append_tokens = TokenSeq(20, 1)}};
}
void ExpectNoWholeRow(LocalNode& node, int num_answered) {
  const DeviceCounters& counters = *node.node().model().device_counters();
  EXPECT_EQ(counters.num_answered_rows, num_answered);
  EXPECT_EQ(counters.num_copied_rows, 0);
}

TEST(GpuNodeTest, TheDrafterHasItsRowsAnswered) {
  const auto node = Serve(MakeDrafterService);
  const auto stub = v1::DrafterService::NewStub(
      grpc::CreateChannel(node->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::DraftResponse response;
  const v1::DraftRequest request =
      ToProto(DraftCall{.header = Opening(),
                        .max_draft_tokens = 3,
                        .options = {.support_size = 8},
                        .sampling = {.frequency_penalty = 0.5}});
  ASSERT_TRUE(stub->Draft(&context, request, &response).ok());
  ExpectNoWholeRow(*node, 3);
}

TEST(GpuNodeTest, TheVerifierHasItsRowsAnswered) {
  const auto node = Serve(MakeVerifierService);
  const auto stub = v1::VerifierService::NewStub(
      grpc::CreateChannel(node->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::VerifyResponse response;
  const v1::VerifyRequest request =
      ToProto(VerifyCall{.header = Opening(),
                         .draft_tokens = {3, 4},
                         .reply_format = ReplyFormat::kTokens,
                         .sampling = {.frequency_penalty = 0.5},
                         .rule = RuleKind::kCoupled});
  ASSERT_TRUE(stub->Verify(&context, request, &response).ok());
  ExpectNoWholeRow(*node, 3);
}

// It is so whoever shares a pass with whom.
TEST(GpuNodeTest, SessionsFindTheirGraphsCaptured) {
  const std::unique_ptr<Node> node =
      MakeNode({.graph_rows = 4, .capture_time = kTimeForGraphs});
  const DeviceCounters& counters = *node->model().device_counters();
  const int64_t num_graphs = counters.num_graphs;
  auto one = Submit(*node, 20, 8), other = Submit(*node, 30, 8);
  EXPECT_THAT(one.get(), IsOk());
  EXPECT_THAT(other.get(), IsOk());
  EXPECT_GE(counters.num_graph_replays, 8);
  EXPECT_EQ(counters.num_late_graphs, 0);
  EXPECT_EQ(counters.num_graphs, num_graphs);
}

TEST(GpuNodeTest, DescribeSaysWhatTheGpuHasDone) {
  const std::unique_ptr<Node> node = MakeNode();
  EXPECT_THAT(Submit(*node, 20, 3).get(), IsOk());
  v1::NodeDescription proto;
  ASSERT_THAT(node->Describe(proto), IsOk());
  const NodeDescription described = FromProto(proto);
  ASSERT_TRUE(described.activity.has_value());
  ASSERT_TRUE(described.activity->gpu.has_value());
  const GpuActivity& gpu = *described.activity->gpu;
  EXPECT_THAT(gpu.name, HasSubstr("emulated"));
  EXPECT_GT(gpu.memory_bytes, described.kv_cache_bytes);
  EXPECT_EQ(gpu.num_copied_rows, 4);
  EXPECT_EQ(gpu.num_graphs, 1);
  EXPECT_EQ(gpu.num_late_graphs, 1);  // none was captured before
  EXPECT_EQ(gpu.num_graph_replays, 2);
}

// What a page of metrics has of this one; -1 where it has none.
double ValueOf(const std::string& name, const std::string& page) {
  const std::string line = absl::StrCat("\noutrider_", name, " ");
  const size_t place = page.find(line);
  return place == std::string::npos
             ? -1
             : std::stod(page.substr(place + line.size()));
}

TEST(GpuNodeTest, SoDoItsMetrics) {
  const std::unique_ptr<Node> node = MakeNode();
  EXPECT_THAT(Submit(*node, 20, 3).get(), IsOk());
  MetricRegistry registry({});
  AddNodeMetrics(registry, *node, "Verify", /*is_simulated=*/false);
  const std::string page = registry.Serialize();
  const DeviceCounters& counters = *node->model().device_counters();
  for (const auto& [name, value] : std::map<std::string, int64_t>{
           {"device_answered_rows_total", counters.num_answered_rows},
           {"device_copied_rows_total", counters.num_copied_rows},
           {"device_undecided_rows_total", counters.num_undecided_rows},
           {"device_graphs", counters.num_graphs},
           {"device_late_graphs_total", counters.num_late_graphs},
           {"device_graph_replays_total", counters.num_graph_replays},
           {"device_drawn_tokens_total", counters.num_drawn_tokens},
           {"device_memory_bytes", counters.num_memory_bytes}}) {
    EXPECT_EQ(ValueOf(name, page), static_cast<double>(value)) << name;
  }
  // Those of rows are not each other's.
  EXPECT_EQ(counters.num_copied_rows, 4);
  EXPECT_EQ(counters.num_undecided_rows, 0);
}

}  // namespace
}  // namespace outrider
