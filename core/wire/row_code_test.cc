// SPDX-License-Identifier: Apache-2.0
#include "core/wire/row_code.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/testing/status_matchers.h"
#include "core/wire/field_convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/drafter.pb.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int kLargeVocabSize = 4096;
constexpr TokenId kLast = std::numeric_limits<TokenId>::max() - 1;

TEST(RowCodeTest, IdsComeBack) {
  TokenSeq whole(5000);
  std::iota(whole.begin(), whole.end(), 0);
  for (const TokenSeq& ids :
       {TokenSeq{}, TokenSeq{0}, TokenSeq{7}, TokenSeq{kLast},
        TokenSeq{0, 1, kLast}, TokenSeq{3, 5, 7, 4000, 128255}, whole}) {
    const auto back =
        UnpackIds(PackIds(ids), static_cast<uint32_t>(ids.size()));
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(*back, ids);
  }
}

TEST(RowCodeTest, WeightsComeBackAsTheyWere) {
  const double least = ToFloat({1});
  for (const std::vector<double>& weights :
       {std::vector<double>{1},
        {0.5, 0.25, 0.25},
        {1, least},
        {0.99609375, 0.00390625},
        std::vector<double>(999, 0.0009765625)}) {
    ASSERT_TRUE(FitBFloat16(weights));
    const auto back = UnpackBFloat16(PackBFloat16(weights),
                                     static_cast<uint32_t>(weights.size()));
    ASSERT_THAT(back, IsOk());
    EXPECT_THAT(*back, ElementsAreArray(weights));
  }
  EXPECT_FALSE(FitBFloat16({1.0 / 3}));
}

TEST(RowCodeTest, EachNumberOfBFloat16ThatIsNoNaNComesBack) {
  std::vector<double> weights;
  for (uint16_t bits = 0; bits <= 0x7f80; ++bits) {
    weights.push_back(ToFloat({bits}));
  }
  const auto back = UnpackBFloat16(PackBFloat16(weights),
                                   static_cast<uint32_t>(weights.size()));
  ASSERT_THAT(back, IsOk());
  EXPECT_THAT(*back, ElementsAreArray(weights));
}

// A row of natural text, p(rank) ~ 1 / rank, over a small model's vocabulary.
TEST(RowCodeTest, AnUncertainRowTakesLessThanTwoBytesAToken) {
  constexpr int kSize = 400;
  std::mt19937 generator(5);
  TokenSeq all(kLargeVocabSize);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), generator);
  TokenSeq ids(all.begin(), all.begin() + kSize);
  std::sort(ids.begin(), ids.end());
  std::vector<double> weights(kSize);
  std::iota(weights.begin(), weights.end(), 1);
  std::shuffle(weights.begin(), weights.end(), generator);
  for (double& weight : weights) weight = 1 / weight;
  const v1::SparseRow row =
      ToProto(Distribution::FromSorted(ids, weights).RoundedToBFloat16());
  EXPECT_EQ(row.num_ids(), kSize);
  EXPECT_LT(row.ByteSizeLong(), 2u * kSize);
}

// The ids of a row over this vocabulary, however many there are.
TEST(RowCodeTest, IdsTakeNoMoreThanABitForEachOfTheVocabulary) {
  std::mt19937 generator(7);
  for (const double share : {1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0}) {
    std::bernoulli_distribution is_there(share);
    TokenSeq ids;
    for (TokenId id = 0; id < kLargeVocabSize; ++id) {
      if (is_there(generator)) ids.push_back(id);
    }
    EXPECT_LE(PackIds(ids).size(), kLargeVocabSize / 8 + 1) << share;
  }
}

TEST(RowCodeTest, IdsThatAreCutOrHaveMoreAreRefused) {
  const TokenSeq ids = {3, 700, 1500, 4000};
  const std::string bytes = PackIds(ids);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(UnpackIds(bytes.substr(0, size), 4),
                StatusIs(kInvalid, HasSubstr("no code of 4 ids")));
  }
  EXPECT_THAT(UnpackIds(bytes + '\0', 4), StatusIs(kInvalid));
  EXPECT_THAT(UnpackIds(bytes, 3), StatusIs(kInvalid));
  EXPECT_THAT(UnpackIds(bytes, 5), StatusIs(kInvalid));
  EXPECT_THAT(UnpackIds(bytes, 0xffffffff), StatusIs(kInvalid));
  EXPECT_THAT(UnpackIds("", 1), StatusIs(kInvalid));
  EXPECT_THAT(UnpackIds("\x20", 0), StatusIs(kInvalid));  // r = 32
}

TEST(RowCodeTest, IdsBeyond31BitsAreRefused) {
  // r = 31: 1, that is 2^31 - 1 left out, has the bits 0 and 31 ones.
  const std::string largest("\x1f\xfe\xff\xff\xff", 5);
  EXPECT_THAT(UnpackIds(largest, 1), IsOk());
  const std::string beyond("\x1f\x01\x00\x00\x00\x00", 6);
  EXPECT_THAT(UnpackIds(beyond, 1), StatusIs(kInvalid));
  const std::string together = PackIds({kLast});
  EXPECT_THAT(UnpackIds(together, 2), StatusIs(kInvalid));
}

TEST(RowCodeTest, WeightsThatAreCutOrHaveMoreAreRefused) {
  const std::string bytes = PackBFloat16({0.5, 0.25, 0.125, 0.125});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(UnpackBFloat16(bytes.substr(0, size), 4),
                StatusIs(kInvalid, HasSubstr("no code of 4 bfloat16")));
  }
  EXPECT_THAT(UnpackBFloat16(bytes + '\0', 4), StatusIs(kInvalid));
  EXPECT_THAT(UnpackBFloat16(bytes, 3), StatusIs(kInvalid));
  EXPECT_THAT(UnpackBFloat16(bytes, 5), StatusIs(kInvalid));
  EXPECT_THAT(UnpackBFloat16(bytes, 0xffffffff), StatusIs(kInvalid));
  // An exponent of 256: the least is 255, and one more.
  const std::string beyond("\x00\xff\x01\x00", 4);
  EXPECT_THAT(UnpackBFloat16(beyond, 1), StatusIs(kInvalid));
}

TEST(RowCodeTest, RowsWithMoreIdsTogetherThanAnybodySendsAreRefused) {
  v1::DraftResponse response;
  for (int i = 0; i < 2; ++i) {
    response.mutable_result()->add_rows()->set_num_ids(kMaxRowIds / 2);
  }
  EXPECT_THAT(CheckNumIds(NumIds(response.result().rows())), IsOk());
  response.mutable_result()->mutable_rows(1)->set_num_ids(0xffffffff);
  EXPECT_THAT(CheckNumIds(NumIds(response.result().rows())),
              StatusIs(kInvalid, HasSubstr("16777216 ids together")));
}

}  // namespace
}  // namespace outrider
