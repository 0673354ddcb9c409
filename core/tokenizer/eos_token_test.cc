// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/eos_token.h"

#include <filesystem>
#include <fstream>

#include "core/tokenizer/tokenizer_loader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A directory whose tokenizer has </s> in its vocabulary, and <|im_end|> beside
// it.
class EosTokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "tokenizer.json") << R"({
      "decoder": {"type": "ByteLevel"},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "added_tokens": [{"id": 2, "content": "<|im_end|>", "special": true,
        "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false}],
      "model": {"vocab": {"a": 0, "</s>": 1}, "merges": []}})";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  absl::StatusOr<std::optional<TokenId>> Read(const std::string& config) const {
    std::ofstream(directory_ / "tokenizer_config.json") << config;
    const auto tokenizer = LoadTokenizer(directory_.string());
    if (!tokenizer.ok()) return tokenizer.status();
    return (*tokenizer)->eos_id();
  }
  std::optional<TokenId> EosOf(const std::string& config) const {
    const auto id = Read(config);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(-1);
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) / "eos_token_test";
};

TEST_F(EosTokenTest, IsAStringOrAnObjectWithOne) {
  EXPECT_EQ(EosOf(R"({"eos_token": "<|im_end|>"})"), 2);
  EXPECT_EQ(EosOf(R"({"eos_token": {"__type": "AddedToken",
                      "content": "</s>", "lstrip": false}})"),
            1);
  // transformers writes this where a tokenizer has no such limit.
  EXPECT_EQ(EosOf(R"({"model_max_length": 1000000000000000019884624838656,
                      "eos_token": "</s>"})"),
            1);
}

TEST_F(EosTokenTest, ThereMayBeNone) {
  EXPECT_EQ(EosOf("{}"), std::nullopt);
  EXPECT_EQ(EosOf(R"({"eos_token": null})"), std::nullopt);
  std::filesystem::remove(directory_ / "tokenizer_config.json");
  const auto tokenizer = LoadTokenizer(directory_.string());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->eos_id(), std::nullopt);
}

TEST_F(EosTokenTest, OneThatTheTokenizerLacksIsWarnedOf) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(EosOf(R"({"eos_token": "<|endoftext|>"})"), std::nullopt);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(" W "), HasSubstr("tokenizer_config.json"),
                    HasSubstr("<|endoftext|>")));
}

TEST_F(EosTokenTest, ADamagedFileIsRefusedByItsName) {
  for (const char* config :
       {"{", R"({"eos_token": 2})", R"({"eos_token": {"id": 2}})"}) {
    const absl::Status status = Read(config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("tokenizer_config.json"));
  }
}

// Nodes of the same tokenizer must agree, whatever else their folders hold.
TEST_F(EosTokenTest, DoesNotMakeAnotherTokenizer) {
  const auto hash = [this] {
    return (*LoadTokenizer(directory_.string()))->fingerprint();
  };
  const std::string without = hash();
  EXPECT_EQ(EosOf(R"({"eos_token": "</s>"})"), 1);
  EXPECT_EQ(hash(), without);
}

}  // namespace
}  // namespace outrider
