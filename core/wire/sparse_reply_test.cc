// SPDX-License-Identifier: Apache-2.0
// What the coordinator reads from nodes: rows that are no distributions.
#include <limits>
#include <string>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/wire/convert.h"
#include "core/wire/field_convert.h"
#include "core/wire/packing.h"
#include "core/wire/row_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kMalformed = absl::StatusCode::kInvalidArgument;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void SetHeader(v1::ReplyHeader& header) {
  header.set_session_id(std::string(16, 's'));
  header.set_incarnation(std::string(16, 'i'));
}

absl::Status ReadDraft(const TokenSeq& ids,
                       const std::vector<double>& weights) {
  v1::DraftResponse response;
  SetHeader(*response.mutable_header());
  response.mutable_result()->add_tokens(3);
  v1::SparseRow& row = *response.mutable_result()->add_rows();
  row.set_num_ids(static_cast<uint32_t>(ids.size()));
  row.set_packed_ids(PackIds(ids));
  row.set_packed_weights(PackFloat64(weights));
  row.set_weight_dtype(v1::DTYPE_FLOAT64);
  return FromProto(response, DraftCall(), /*vocab_size=*/10).status();
}

TEST(SparseReplyTest, ADraftRowThatIsNoDistributionIsRefused) {
  ASSERT_THAT(ReadDraft({3, 4}, {0.5, 0.5}), IsOk());
  EXPECT_THAT(ReadDraft({3, 10}, {0.5, 0.5}),
              StatusIs(kMalformed, HasSubstr("token id 10")));
  EXPECT_THAT(ReadDraft({3, 4}, {0.5, kNan}),
              StatusIs(kMalformed, HasSubstr("positive and finite")));
  EXPECT_THAT(ReadDraft({3, 4}, {0.5, 0}),
              StatusIs(kMalformed, HasSubstr("positive and finite")));
  EXPECT_THAT(ReadDraft({3, 4}, {0.5, 0.4}),
              StatusIs(kMalformed, HasSubstr("sum to 1, not to 0.9")));
  EXPECT_THAT(ReadDraft({3, 4}, {0.5}),
              StatusIs(kMalformed, HasSubstr("2 ids, 1 weights")));
}

// A SPARSE reply to one draft with support {3, 4}: its row, then the last one.
absl::Status ReadTarget(const std::vector<double>& p, double tail_mass,
                        bool has_tail_token = true, uint32_t tail_token = 7) {
  v1::VerifyResponse response;
  SetHeader(*response.mutable_header());
  v1::TargetRow& row = *response.mutable_sparse()->add_rows();
  row.set_probabilities(PackFloat64(p));
  row.set_tail_mass(tail_mass);
  if (has_tail_token) row.set_tail_token(tail_token);
  v1::TargetRow& last = *response.mutable_sparse()->add_rows();
  last.set_tail_mass(1);
  last.set_tail_token(2);
  VerifyCall call;
  call.draft_tokens = {3};
  call.reply_format = ReplyFormat::kSparse;
  call.supports = {{3, 4}};
  return FromProto(std::move(response), call).status();
}

TEST(SparseReplyTest, ATargetRowThatIsNoDistributionIsRefused) {
  ASSERT_THAT(ReadTarget({0.25, 0.25}, 0.5), IsOk());
  for (const double off : {0.49, 0.51, 0.0, -0.5, kNan}) {
    EXPECT_THAT(ReadTarget({0.25, 0.25}, off),
                StatusIs(kMalformed, HasSubstr("sum to 1")))
        << off;
  }
  EXPECT_THAT(ReadTarget({kNan, 0.25}, 0.5),
              StatusIs(kMalformed, HasSubstr("sum to 1")));
  EXPECT_THAT(ReadTarget({-0.25, 0.75}, 0.5),
              StatusIs(kMalformed, HasSubstr("sum to 1")));
  EXPECT_THAT(ReadTarget({0.5}, 0.5),
              StatusIs(kMalformed, HasSubstr("1 probabilities for 2 tokens")));
  EXPECT_THAT(ReadTarget({0.25, 0.25}, 0.5, /*has_tail_token=*/false),
              StatusIs(kMalformed, HasSubstr("if and only if")));
  EXPECT_THAT(ReadTarget({0.5, 0.5}, 0),
              StatusIs(kMalformed, HasSubstr("if and only if")));
  EXPECT_THAT(ReadTarget({0.25, 0.25}, 0.5, /*has_tail_token=*/true,
                         /*tail_token=*/4),
              StatusIs(kMalformed, HasSubstr("on the draft's support")));
}

}  // namespace
}  // namespace outrider
