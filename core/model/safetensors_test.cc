// SPDX-License-Identifier: Apache-2.0
#include "core/model/safetensors.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string LittleEndian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes;
}

// A whole file: length, header, data.
std::string FileWith(const std::string& header, size_t data_bytes) {
  std::string data(data_bytes, '\0');
  for (size_t i = 0; i < data_bytes; ++i) data[i] = static_cast<char>(i);
  return absl::StrCat(LittleEndian(header.size()), header, data);
}

constexpr char kTwoTensors[] =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[1,3],"data_offsets":[8,14]}})";

class SafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 absl::StrCat("outrider_safetensors_test_", getpid());
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  absl::StatusOr<Checkpoint> Open() const {
    return Checkpoint::Open(directory_.string());
  }
  absl::Status OpenFile(const std::string& bytes) const {
    Write("model.safetensors", bytes);
    return Open().status();
  }

  std::filesystem::path directory_;
};

TEST_F(SafetensorsTest, TensorsAreReadWhereTheHeaderPutsThem) {
  Write("model.safetensors", FileWith(kTwoTensors, 14));
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  const TensorEntry& b = checkpoint->tensors().at("b");
  EXPECT_EQ(b.dtype, "BF16");
  EXPECT_THAT(b.shape, ElementsAre(1, 3));
  std::string bytes(6, '\0');
  ASSERT_TRUE(checkpoint->Read(b, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, "\x08\x09\x0a\x0b\x0c\x0d");
}

TEST_F(SafetensorsTest, SpacesAfterTheHeaderAndMetadataAreFine) {
  const std::string header = absl::StrCat(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[],)",
      R"("data_offsets":[0,1]}}    )");
  EXPECT_TRUE(OpenFile(FileWith(header, 1)).ok());
}

TEST_F(SafetensorsTest, AFileThatShrinksAfterOpeningIsAnErrorNotASignal) {
  Write("model.safetensors", FileWith(kTwoTensors, 14));
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok());
  std::filesystem::resize_file(directory_ / "model.safetensors", 40);
  std::string bytes(6, '\0');
  const absl::Status status =
      checkpoint->Read(checkpoint->tensors().at("b"), absl::MakeSpan(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("copy it again"));
}

// --- Hostile files: each must be refused, saying why. ---

struct HostileFile {
  const char* name;
  std::string bytes;
  const char* complaint;
};

// One tensor "a" with this description, and so many bytes of data.
std::string One(const std::string& description, size_t data_bytes) {
  return FileWith(absl::StrCat(R"({"a":)", description, "}"), data_bytes);
}

std::string Nested(int depth) {
  return absl::StrCat(R"({"a":)", std::string(depth, '['),
                      std::string(depth, ']'), "}");
}

std::vector<HostileFile> HostileFiles() {
  const std::string good = FileWith(kTwoTensors, 14);
  return {
      {"Empty", "", "too few"},
      {"SevenBytes", std::string(7, '\0'), "too few"},
      {"NoHeader", LittleEndian(0), "does not start with {"},
      {"LengthBeyondTheFile", LittleEndian(1000) + "{}", "header length"},
      {"LengthOfAllOnes", LittleEndian(~uint64_t{0}) + "{}", "header length"},
      {"LengthThatWrapsAround", LittleEndian(~uint64_t{0} - 7) + "{}",
       "header length"},
      {"HeaderOver16MiB",
       LittleEndian(16 * kMiB + 1) + "{}" + std::string(17 * kMiB, ' '),
       "header length"},
      {"LeadingSpace", FileWith(" {}", 0), "does not start with {"},
      {"ByteOrderMark", FileWith("\xef\xbb\xbf{}", 0), "does not start with {"},
      {"Array", FileWith("[]", 0), "does not start with {"},
      {"CutInTheHeader", good.substr(0, 60), "header length"},
      {"CutInTheData", good.substr(0, good.size() - 1), "cut off"},
      {"BytesAfterTheData", good + "x", "but the file has"},
      {"TextAfterTheObject", FileWith("{}x", 0), "not valid JSON"},
      {"SecondObject", FileWith("{}{}", 0), "not valid JSON"},
      {"ZeroByteInTheHeader", FileWith(std::string("{}\0", 3), 0),
       "not valid JSON"},
      {"BytesAfterAZeroByte", FileWith(std::string("{}\0{", 4), 0),
       "not valid JSON"},
      {"NotUtf8",
       FileWith("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":"
                "[0,1]}}",
                1),
       "not valid JSON"},
      {"OverlongUtf8",
       FileWith("{\"\xc0\xaf\":{\"dtype\":\"U8\",\"shape\":[1],"
                "\"data_offsets\":[0,1]}}",
                1),
       "not valid JSON"},
      {"Comment", FileWith("{/* */}", 0), "not valid JSON"},
      {"DuplicateTensor",
       FileWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2),
       "appears twice"},
      {"DuplicateKeyByEscape",
       FileWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                2),
       "appears twice"},
      {"DuplicateField",
       One(R"({"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]})",
           1),
       "appears twice"},
      {"DepthFive", FileWith(Nested(4), 0), "nested deeper"},
      {"DepthOfAMillion", FileWith(Nested(1000000), 0), "nested deeper"},
      {"EntryIsANumber", One("1", 1), "not an object"},
      {"EntryLacksShape", One(R"({"dtype":"U8","data_offsets":[0,1]})", 1),
       "needs dtype"},
      {"EntryWithMore",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1})", 1),
       "unknown key"},
      {"UnknownDtype",
       One(R"({"dtype":"F7","shape":[1],"data_offsets":[0,1]})", 1),
       "unknown dtype"},
      {"DtypeIsANumber",
       One(R"({"dtype":7,"shape":[1],"data_offsets":[0,1]})", 1),
       "dtype is not a string"},
      {"ShapeIsANumber",
       One(R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", 1),
       "shape is not an array"},
      {"NegativeSize",
       One(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1),
       "bad size"},
      {"FractionalSize",
       One(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", 1),
       "bad size"},
      {"RankNine",
       One(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],)"
           R"("data_offsets":[0,1]})",
           1),
       "rank 9"},
      // 2^32 * 2^32 is 0 in 64 bits, as is 2^62 * 4 bytes.
      {"ShapeProductOverflows",
       One(R"({"dtype":"U8","shape":[4294967296,4294967296],)"
           R"("data_offsets":[0,0]})",
           0),
       "overflows"},
      {"ByteCountOverflows",
       One(R"({"dtype":"F32","shape":[4611686018427387904],)"
           R"("data_offsets":[0,0]})",
           0),
       "overflows"},
      {"SizeBeyond64Bits",
       One(R"({"dtype":"U8","shape":[18446744073709551617],)"
           R"("data_offsets":[0,1]})",
           1),
       "bad size"},
      {"ZeroSizeAlias",
       One(R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})", 0),
       "empty tensor"},
      {"OffsetsBackwards",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})", 1),
       "do not hold"},
      {"ThreeOffsets",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,1]})", 1),
       "not two"},
      {"NegativeOffset",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[-1,0]})", 1),
       "not two"},
      {"OffsetsOfAnotherSize",
       One(R"({"dtype":"F32","shape":[1],"data_offsets":[0,2]})", 2),
       "do not hold"},
      {"OffsetsBeyondTheFile",
       One(R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})", 1), "cut off"},
      {"OffsetsNearTheLimit",
       One(R"({"dtype":"U8","shape":[1],)"
           R"("data_offsets":[18446744073709551614,18446744073709551615]})",
           1),
       "after a hole"},
      {"HoleAtTheStart",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[1,2]})", 2),
       "after a hole"},
      {"HoleAtTheEnd",
       One(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})", 2),
       "but the file has"},
      {"Overlap",
       FileWith(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                3),
       "inside another"},
      {"TwoNamesForTheSameBytes",
       FileWith(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                2),
       "inside another"},
      {"MetadataIsAList", FileWith(R"({"__metadata__":[]})", 0),
       "__metadata__ is not"},
      {"MetadataHoldsANumber", FileWith(R"({"__metadata__":{"x":1}})", 0),
       "is not a string"},
  };
}

TEST_F(SafetensorsTest, EveryHostileFileIsRefusedAndNamed) {
  for (const HostileFile& hostile : HostileFiles()) {
    const absl::Status status = OpenFile(hostile.bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << hostile.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(hostile.complaint))
        << hostile.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("model.safetensors"))
        << hostile.name;
  }
}

TEST_F(SafetensorsTest, EveryTruncationOfAGoodFileIsRefused) {
  const std::string good = FileWith(kTwoTensors, 14);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(OpenFile(good.substr(0, size)).ok()) << size;
  }
  EXPECT_TRUE(OpenFile(good).ok());
}

// Not one of them may crash; what still parses must lie within the file.
TEST_F(SafetensorsTest, EveryFlippedBitOfTheHeaderGivesTensorsWithinTheFile) {
  const std::string header = kTwoTensors;
  const uint64_t file_size = 8 + header.size() + 14;
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    std::string flipped = header;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto tensors = ParseSafetensorsHeader(flipped, file_size, "file");
    if (!tensors.ok()) continue;
    for (const auto& [name, entry] : *tensors) {
      EXPECT_LE(entry.offset + entry.num_bytes, file_size) << flipped;
    }
  }
}

// --- Shards and directories. ---

std::string TensorFile(const std::string& name) {
  return FileWith(
      absl::StrCat("{\"", name,
                   R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})"),
      2);
}

TEST_F(SafetensorsTest, ShardsAreOneCheckpoint) {
  Write("1.safetensors", TensorFile("a"));
  Write("2.safetensors", TensorFile("b"));
  Write("model.safetensors.index.json",
        R"({"metadata":{"total_size":4},"weight_map":{"a":"1.safetensors",)"
        R"("b":"2.safetensors"}})");
  const auto checkpoint = Open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_THAT(checkpoint->path(checkpoint->tensors().at("b")),
              HasSubstr("2.safetensors"));
}

struct BadIndex {
  const char* index;
  absl::StatusCode code;
  const char* complaint;
};

TEST_F(SafetensorsTest, AnIndexThatDoesNotMatchItsShardsIsRefused) {
  Write("1.safetensors", TensorFile("a"));
  Write("2.safetensors", TensorFile("a"));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::vector<BadIndex> cases = {
      {R"({)", kInvalid, "not valid JSON"},
      {R"({})", kInvalid, "no weight_map"},
      {R"({"weight_map":{}})", kInvalid, "no weight_map"},
      {R"({"weight_map":{"a":1}})", kInvalid, "non-string"},
      {R"({"weight_map":{"a":"1.safetensors","a":"1.safetensors"}})", kInvalid,
       "appears twice"},
      {R"({"weight_map":{"a":"../1.safetensors"}})", kInvalid, "not the name"},
      {R"({"weight_map":{"a":"/etc/1.safetensors"}})", kInvalid,
       "not the name"},
      {R"({"weight_map":{"a":"1.bin"}})", kInvalid, "not the name"},
      {R"({"weight_map":{"a":"3.safetensors"}})", absl::StatusCode::kNotFound,
       "3.safetensors"},
      {R"({"weight_map":{"b":"1.safetensors"}})", kInvalid, "is not in"},
      {R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})", kInvalid,
       "is not in"},
      {R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})", kInvalid,
       "is also in"},
  };
  for (const BadIndex& bad : cases) {
    Write("model.safetensors.index.json", bad.index);
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), bad.code) << bad.index << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.complaint))
        << bad.index;
  }
}

TEST_F(SafetensorsTest, ShardsWithATensorTheIndexDoesNotNameAreRefused) {
  Write("1.safetensors", FileWith(kTwoTensors, 14));
  Write("model.safetensors.index.json",
        R"({"weight_map":{"a":"1.safetensors"}})");
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("tensor \"b\" is not in"));
}

TEST_F(SafetensorsTest, OtherFormatsAreRefusedByName) {
  for (const char* name :
       {"pytorch_model.bin", "model-q4.gguf", "consolidated.00.pth"}) {
    Write(name, "x");
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(Checkpoint::Open((directory_ / name).string()).status().code(),
              absl::StatusCode::kUnimplemented);
    std::filesystem::remove(directory_ / name);
  }
}

TEST_F(SafetensorsTest, NothingThereIsNotFound) {
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Checkpoint::Open("/nonexistent").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, ADirectoryInPlaceOfTheFileIsRefused) {
  std::filesystem::create_directory(directory_ / "model.safetensors");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
