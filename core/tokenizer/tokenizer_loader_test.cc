// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/tokenizer_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

class TokenizerLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(::testing::TempDir()) /
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  absl::Status LoadStatus() const {
    return LoadTokenizer(directory_.string()).status();
  }
  std::filesystem::path File() const { return directory_ / "tokenizer.json"; }

  std::filesystem::path directory_;
};

TEST_F(TokenizerLoaderTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(LoadStatus())) << LoadStatus();
  EXPECT_TRUE(absl::IsNotFound(LoadTokenizer("").status()));
}

TEST_F(TokenizerLoaderTest, ADirectoryInItsPlaceIsInvalid) {
  std::filesystem::create_directory(File());
  EXPECT_TRUE(absl::IsInvalidArgument(LoadStatus())) << LoadStatus();
}

TEST_F(TokenizerLoaderTest, MessagesNameTheFile) {
  std::ofstream(File()) << "{";
  EXPECT_TRUE(absl::IsInvalidArgument(LoadStatus()));
  EXPECT_THAT(std::string(LoadStatus().message()), HasSubstr(File().string()));
}

TEST_F(TokenizerLoaderTest, MoreThan32MiBAreNotEvenParsed) {
  std::ofstream(File()) << "{}";
  std::filesystem::resize_file(File(), (32 << 20) + 1);
  EXPECT_THAT(std::string(LoadStatus().message()), HasSubstr("more than"));
}

TEST_F(TokenizerLoaderTest, AFileThatIsWholeLoads) {
  std::ofstream(File()) << R"({"decoder": {"type": "ByteLevel"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  const auto tokenizer = LoadTokenizer(directory_.string());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("abba"), (std::vector<TokenId>{2, 1, 0}));
  EXPECT_EQ((*tokenizer)->Decode({2, 1, 0}), "abba");
  EXPECT_EQ((*tokenizer)->vocab_size(), 3);
  EXPECT_EQ((*tokenizer)->fingerprint().size(), 64u);
}

}  // namespace
}  // namespace outrider
