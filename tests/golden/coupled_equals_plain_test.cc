// SPDX-License-Identifier: Apache-2.0
// The coupled rule through the three real processes, on the demo target: one
// seed gives one text, whatever K, whoever drafts, and when a drafter dies in
// the middle of it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/model/solo_session.h"
#include "core/node/measure.h"
#include "core/sampling/coins.h"
#include "core/sampling/process.h"
#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/demo_trio.h"

namespace outrider::testing::coupled_equals_plain {
namespace {

constexpr int kNumTokens = 64;
constexpr SamplingParams kSampling = {.temperature = 0.8, .top_p = 0.95};
constexpr uint64_t kSeeds[] = {7, 20261121};
// Repeats itself, so that n-grams find something.
const std::string kPrompt =
    "def __init__(self, name, value):\n"
    "    self.name = name\n"
    "    self.value = value\n"
    "    self.";

struct Decoded {
  TokenSeq tokens = {};
  int num_drafted = 0;
  int num_accepted = 0;
  int num_misses = 0;
};

client::GenerationRequest Request(uint64_t seed, int k, int num_tokens) {
  client::GenerationRequest request;
  request.prompt = kPrompt;
  request.temperature = kSampling.temperature;
  request.top_p = kSampling.top_p;
  request.acceptance_rule = RuleKind::kCoupled;
  request.seed = seed;
  request.num_speculative_tokens = k;
  request.max_tokens = num_tokens;
  request.ignore_eos = true;
  return request;
}

// Restarts the drafter once `restart_at` tokens have come; 0: never.
Decoded Decode(DemoTrio& trio, const client::GenerationRequest& request,
               size_t restart_at = 0) {
  const auto stream = trio.client().Generate(request, std::chrono::minutes(3));
  Decoded run;
  while (true) {
    const auto update = stream->Next();
    EXPECT_THAT(update, IsOk());
    if (!update.ok() || !update->has_value()) return run;
    for (const auto& token : (*update)->tokens) run.tokens.push_back(token.id);
    if (const auto& round = (*update)->round) {
      run.num_drafted += round->num_drafted;
      run.num_accepted += round->num_accepted;
    }
    if ((*update)->finish) run.num_misses = (*update)->finish->num_misses;
    if (restart_at > 0 && run.tokens.size() >= restart_at) {
      trio.RestartDrafter();
      restart_at = 0;
    }
  }
}

// A model directory for outrider-drafter: the demo target's tokenizer and a
// llama of one layer with random weights, whose rows are nearly uniform.
class RandomModel {
 public:
  RandomModel()
      : directory_(std::filesystem::temp_directory_path() /
                   ("outrider-random-model-" + std::to_string(getpid()))) {
    const std::filesystem::path demo = SourcePath("models/demo-target");
    std::filesystem::create_directories(directory_);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json",
                             "generation_config.json"}) {
      std::filesystem::copy_file(
          demo / name, directory_ / name,
          std::filesystem::copy_options::overwrite_existing);
    }
    nlohmann::json config;
    std::ifstream(demo / "config.json") >> config;
    config["hidden_size"] = kHidden;
    config["intermediate_size"] = kHidden;
    config["num_hidden_layers"] = 1;
    config["num_attention_heads"] = 1;
    config["num_key_value_heads"] = 1;
    config["head_dim"] = kHidden;
    std::ofstream(directory_ / "config.json") << config;
    WriteWeights(config["vocab_size"]);
  }
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;
  ~RandomModel() { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_.string(); }

 private:
  static constexpr int kHidden = 64;

  void WriteWeights(int vocab_size) const {
    const std::string layer = "model.layers.0.";
    const std::vector<int> square = {kHidden, kHidden};
    std::vector<std::pair<std::string, std::vector<int>>> tensors = {
        {"model.embed_tokens.weight", {vocab_size, kHidden}},
        {"model.norm.weight", {kHidden}},
        {layer + "input_layernorm.weight", {kHidden}},
        {layer + "post_attention_layernorm.weight", {kHidden}}};
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj",
                             "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      tensors.emplace_back(layer + name + ".weight", square);
    }
    nlohmann::json header;
    std::string data;
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.02f);
    for (const auto& [name, shape] : tensors) {
      const size_t begin = data.size();
      const int count =
          std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
      for (int i = 0; i < count; ++i) {
        // Norms scale by one, all else is noise.
        const uint16_t bits =
            ToBFloat16(shape.size() == 1 ? 1.0f : normal(random)).bits;
        data.push_back(static_cast<char>(bits & 0xff));
        data.push_back(static_cast<char>(bits >> 8));
      }
      header[name] = {{"dtype", "BF16"},
                      {"shape", shape},
                      {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::ofstream file(directory_ / "model.safetensors", std::ios::binary);
    for (int i = 0; i < 8; ++i) {
      file.put(static_cast<char>(uint64_t{text.size()} >> (8 * i)));
    }
    file << text << data;
  }

  const std::filesystem::path directory_;
};

// The demo target inside this process, to say where texts part.
class CoupledEqualsPlainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string target = SourcePath("models/demo-target");
    auto tokenizer = LoadTokenizer(target);
    ASSERT_THAT(tokenizer, IsOk());
    vocab_size_ = (*tokenizer)->vocab_size();
    prompt_ = (*tokenizer)->Encode(kPrompt);
    const auto for_measure = LoadTorchCausalLm({.model_directory = target});
    ASSERT_THAT(for_measure, IsOk());
    const auto measured = MeasureModel(
        **for_measure, {.vocab_size = vocab_size_, .num_repeats = 1});
    ASSERT_THAT(measured, IsOk());
    auto model = LoadTorchCausalLm({.model_directory = target});
    ASSERT_THAT(model, IsOk());
    model_ = *std::move(model);
    auto session = SoloSession::Open(*model_, model_->info().context_length);
    ASSERT_THAT(session, IsOk());
    session_ = *std::move(session);
    rows_depend_on_count_ = measured->rows_depend_on_count;
    logit_difference_ = measured->max_logit_difference;
    std::cout << "rows " << (rows_depend_on_count_ ? "" : "do not ")
              << "depend on their number\n";
  }

  // The same tokens. Where the kernels' rows depend on their number the first
  // difference may be a race that such a difference decides.
  void ExpectSame(const TokenSeq& tokens, const TokenSeq& plain,
                  uint64_t seed) {
    if (tokens == plain) return;
    ASSERT_TRUE(rows_depend_on_count_) << "another text";
    ASSERT_EQ(tokens.size(), plain.size());
    const auto place =
        std::mismatch(tokens.begin(), tokens.end(), plain.begin()).first -
        tokens.begin();
    EXPECT_LE(RaceGap(plain, place, seed),
              4 * logit_difference_ / kSampling.temperature)
        << "differs at token " << place << ", and it is no tie";
  }

 private:
  // How far apart the two first of the race for token `place` are, in logits
  // over temperature.
  double RaceGap(const TokenSeq& plain, size_t place, uint64_t seed) {
    TokenSeq context = prompt_;
    context.insert(context.end(), plain.begin(), plain.begin() + place);
    const auto rows = session_->Extend(0, context, 1);
    EXPECT_THAT(rows, IsOk());
    const auto p = Process(rows->Row(0).first(vocab_size_), kSampling, {});
    EXPECT_THAT(p, IsOk());
    const Coins coins(seed);
    std::vector<double> times;
    for (const TokenId v : p->support()) {
      const double noise = -std::log(coins.OpenUniform(context.size(), v));
      times.push_back(std::log(noise / (*p)(v)));
    }
    if (times.size() < 2) return std::numeric_limits<double>::infinity();
    std::nth_element(times.begin(), times.begin() + 1, times.end());
    return times[1] - times[0];
  }

  std::unique_ptr<CausalLm> model_;
  std::optional<SoloSession> session_;  // of model_
  TokenSeq prompt_;
  int vocab_size_ = 0;
  bool rows_depend_on_count_ = false;
  double logit_difference_ = 0;
};

TEST_F(CoupledEqualsPlainTest, WithThreeDraftersAndEveryDraftLength) {
  const RandomModel random;
  std::vector<TokenSeq> plain;
  for (const DemoDrafter& drafter :
       {DemoDrafter{}, DemoDrafter{.strategy = "ngram"},
        DemoDrafter{.model = random.path()}}) {
    SCOPED_TRACE(drafter.strategy + " " + drafter.model);
    DemoTrio trio(drafter);
    Decoded sum;
    for (size_t s = 0; s < std::size(kSeeds); ++s) {
      for (const int k : {0, 1, 3, 5, 8}) {
        SCOPED_TRACE("K = " + std::to_string(k));
        const Decoded run = Decode(trio, Request(kSeeds[s], k, kNumTokens));
        EXPECT_EQ(run.tokens.size(), size_t{kNumTokens});
        EXPECT_EQ(run.num_misses, 0);
        // K = 0 of the first drafter, which it does not ask.
        if (plain.size() == s) plain.push_back(run.tokens);
        ExpectSame(run.tokens, plain[s], kSeeds[s]);
        sum.num_drafted += run.num_drafted;
        sum.num_accepted += run.num_accepted;
      }
    }
    std::cout << drafter.strategy << ": " << sum.num_accepted << " of "
              << sum.num_drafted << " drafts accepted\n";
    EXPECT_GT(sum.num_drafted, 0);
    if (drafter.model == random.path()) {
      // Garbage it is: near the 1 in 4096 of uniform drafts.
      EXPECT_LT(sum.num_accepted, sum.num_drafted / 10);
    }
    trio.Stop();
  }
  EXPECT_NE(plain[0], plain[1]);  // another seed, another text
}

TEST_F(CoupledEqualsPlainTest, WithADrafterRestartedInTheMiddle) {
  constexpr int kLongText = 600;
  DemoTrio trio;
  const Decoded plain = Decode(trio, Request(kSeeds[0], 0, kLongText));
  ASSERT_EQ(plain.tokens.size(), size_t{kLongText});
  Decoded run;
  // Where others load the machine, the drafter may be left alone for as long
  // as a stream: another one sees it again.
  for (int i = 0; i < 10 && (run.num_misses == 0 || run.num_accepted == 0);
       ++i) {
    run = Decode(trio, Request(kSeeds[0], 4, kLongText), /*restart_at=*/40);
    ExpectSame(run.tokens, plain.tokens, kSeeds[0]);
  }
  // The new drafter was asked in this very stream: it did not know the session.
  EXPECT_GT(run.num_misses, 0);
  EXPECT_GT(run.num_accepted, 0);
  trio.Stop();
}

}  // namespace
}  // namespace outrider::testing::coupled_equals_plain
