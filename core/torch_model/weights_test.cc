// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/weights.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string GoldenModel(const std::string& name) {
  const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
  return absl::StrCat(source == nullptr ? "." : source,
                      "/tests/golden/testdata/models/", name);
}

struct RawTensor {
  std::string dtype = {};
  std::vector<int64_t> shape = {};
  std::string bytes = {};
};
using RawTensors = std::map<std::string, RawTensor>;

RawTensors ReadAll(const std::string& directory) {
  const auto checkpoint = Checkpoint::Open(directory);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  RawTensors all;
  for (const auto& [name, entry] : checkpoint->tensors()) {
    RawTensor& raw = all[name];
    raw = {entry.dtype, entry.shape, std::string(entry.num_bytes, '\0')};
    EXPECT_TRUE(checkpoint->Read(entry, absl::MakeSpan(raw.bytes)).ok());
  }
  return all;
}

class WeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 absl::StrCat("outrider_weights_test_", getpid());
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // One file with these tensors, in the order of their names.
  void Write(const RawTensors& tensors) const {
    nlohmann::json header;
    size_t end = 0;
    for (const auto& [name, raw] : tensors) {
      header[name] = {{"dtype", raw.dtype},
                      {"shape", raw.shape},
                      {"data_offsets", {end, end + raw.bytes.size()}}};
      end += raw.bytes.size();
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::ofstream file(directory_ / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << text;
    for (const auto& [name, raw] : tensors) file << raw.bytes;
  }

  absl::StatusOr<ModelWeights> Load(const std::string& config_of,
                                    const std::string& directory) const {
    const auto config = ReadModelConfig(GoldenModel(config_of));
    EXPECT_TRUE(config.ok()) << config.status();
    const auto checkpoint = Checkpoint::Open(directory);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return LoadWeights(*config, *checkpoint, *MakeAtenOps(), {});
  }
  absl::StatusOr<ModelWeights> LoadWritten(const std::string& config_of,
                                           const RawTensors& tensors) const {
    Write(tensors);
    return Load(config_of, directory_.string());
  }
  void ExpectRefused(const RawTensors& tensors, absl::StatusCode code,
                     const std::string& complaint) const {
    const absl::Status status = LoadWritten("llama", tensors).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(complaint));
  }

  std::filesystem::path directory_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr char kDown[] = "model.layers.1.mlp.down_proj.weight";

TEST_F(WeightsTest, MissingTensorsAreNamed) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors.erase(kDown);
  ExpectRefused(tensors, kInvalid, kDown);
}

TEST_F(WeightsTest, UnexpectedTensorsAreNamed) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors["model.layers.0.self_attn.q_proj.bias"] = {"U8", {1}, "x"};
  ExpectRefused(tensors, kInvalid, "model.layers.0.self_attn.q_proj.bias");
}

TEST_F(WeightsTest, ALayerTooManyIsNotIgnored) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors["model.layers.2.mlp.down_proj.weight"] = tensors[kDown];
  ExpectRefused(tensors, kInvalid, "model.layers.2.mlp.down_proj.weight");
}

TEST_F(WeightsTest, WrongShapesAreNamedWithBothShapes) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors[kDown].shape = {48, 32};  // transposed: the same number of bytes
  ExpectRefused(tensors, kInvalid,
                "is [48, 32], but config.json asks for "
                "[32, 48]");
}

TEST_F(WeightsTest, AConfigOfAHugeModelIsRefusedBeforeMemoryIsAskedFor) {
  ModelConfig config = *ReadModelConfig(GoldenModel("llama"));
  config.vocab_size = config.hidden_size = config.intermediate_size = 1 << 22;
  const auto checkpoint = Checkpoint::Open(GoldenModel("llama"));
  const absl::Status status =
      LoadWeights(config, *checkpoint, *MakeAtenOps(), {}).status();
  EXPECT_EQ(status.code(), kInvalid) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("[4194304, 4194304]"));
}

TEST_F(WeightsTest, DtypesWithoutSupportAreNamed) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors[kDown].dtype = "I32";
  ExpectRefused(tensors, absl::StatusCode::kUnimplemented, "I32");
}

TEST_F(WeightsTest, KnownBuffersOfOldCheckpointsAreAllowed) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      "F32", {4}, std::string(16, '\0')};
  const auto weights = LoadWritten("llama", tensors);
  EXPECT_TRUE(weights.ok()) << weights.status();
}

TEST_F(WeightsTest, ATiedHeadMayBeThereIfItIsTheEmbedding) {
  RawTensors tensors = ReadAll(GoldenModel("qwen2_tied"));
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  EXPECT_TRUE(LoadWritten("qwen2_tied", tensors).ok());
  tensors["lm_head.weight"].bytes[5] ^= 1;
  const absl::Status status = LoadWritten("qwen2_tied", tensors).status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lm_head.weight"));
}

TEST_F(WeightsTest, AnUntiedHeadMustBeThere) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  tensors.erase("lm_head.weight");
  ExpectRefused(tensors, kInvalid, "lm_head.weight");
}

TEST_F(WeightsTest, TheHashIsTheSameForShardsAndForOneFile) {
  const std::string sharded = GoldenModel("mistral_sliding_sharded");
  const auto of_shards = Load("mistral_sliding_sharded", sharded);
  const auto of_one_file =
      LoadWritten("mistral_sliding_sharded", ReadAll(sharded));
  ASSERT_TRUE(of_shards.ok()) << of_shards.status();
  ASSERT_TRUE(of_one_file.ok()) << of_one_file.status();
  EXPECT_EQ(of_shards->hash, of_one_file->hash);
}

TEST_F(WeightsTest, TheHashChangesWithOneBit) {
  RawTensors tensors = ReadAll(GoldenModel("llama"));
  const auto before = LoadWritten("llama", tensors);
  tensors[kDown].bytes[77] ^= 1;
  const auto after = LoadWritten("llama", tensors);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_THAT(after->hash, Not(before->hash));
}

// The same tensors make other rows there.
TEST_F(WeightsTest, TheHashChangesWithTheArithmeticOfTheConfiguration) {
  const auto checkpoint = Checkpoint::Open(GoldenModel("llama"));
  auto config = ReadModelConfig(GoldenModel("llama"));
  ASSERT_TRUE(checkpoint.ok() && config.ok());
  const auto load = [&] {
    return LoadWeights(*config, *checkpoint, *MakeAtenOps(), {});
  };
  const auto before = load();
  config->context_length += 1;
  const auto longer = load();
  config->rope_theta *= 2;
  const auto after = load();
  ASSERT_TRUE(before.ok() && longer.ok() && after.ok());
  EXPECT_EQ(longer->hash, before->hash);
  EXPECT_NE(after->hash, before->hash);
}

TEST_F(WeightsTest, TheirBytesAreThoseOfTheirDtypeOnADevice) {
  RawTensors tensors;
  tensors["a"] = {"BF16", {3, 5}, std::string(30, '\0')};
  tensors["b"] = {"F32", {2}, std::string(8, '\0')};
  Write(tensors);
  const auto checkpoint = Checkpoint::Open(directory_.string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(WeightBytes(*checkpoint, at::kFloat), 4 * 17);
  EXPECT_EQ(WeightBytes(*checkpoint, at::kBFloat16), 2 * 17);
}

TEST_F(WeightsTest, QueriesKeysAndValuesLieBelowEachOtherInOneMatrix) {
  const auto weights = Load("llama", GoldenModel("llama"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  const at::Tensor& qkv = weights->layers[0].attention.qkv.matrix.tensor;
  EXPECT_EQ(qkv.sizes(), at::IntArrayRef({32 + 2 * 16, 32}));
  EXPECT_TRUE(qkv.is_contiguous());
  EXPECT_EQ(weights->layers[0].feed_forward.up.matrix.tensor.size(0), 2 * 48);
}

}  // namespace
}  // namespace outrider
