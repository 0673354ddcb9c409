// SPDX-License-Identifier: Apache-2.0
// Draft rows as a faulty or hostile peer may send them, to the verifier's real
// service over gRPC: refused with INVALID_ARGUMENT, and nothing else happens.
#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/rpc/channel.h"
#include "core/wire/field_convert.h"
#include "core/wire/packing.h"
#include "core/wire/rice_code.h"
#include "core/wire/row_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/verifier.grpc.pb.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::HasSubstr;

struct MalformedRow {
  std::string name;
  std::function<void(v1::VerifyRequest&)> change;
  std::string message;
};

v1::SparseRow Row(const TokenSeq& ids, const std::vector<double>& weights) {
  v1::SparseRow row;
  row.set_num_ids(static_cast<uint32_t>(ids.size()));
  row.set_packed_ids(PackIds(ids));
  if (!weights.empty()) {
    row.set_packed_weights(PackFloat64(weights));
    row.set_weight_dtype(v1::DTYPE_FLOAT64);
  }
  return row;
}

class MalformedRowsTest : public ::testing::Test {
 protected:
  MalformedRowsTest()
      : cluster_({.target = {.table =
                                 [](absl::Span<const TokenId> context) {
                                   return HashTarget(context, kVocab);
                                 },
                             .vocab_size = kVocab,
                             .context_length = 64},
                  .draft = {.table =
                                [](absl::Span<const TokenId> context) {
                                  return HashDraft(context, kVocab);
                                },
                            .vocab_size = kVocab,
                            .context_length = 64}}),
        stub_(v1::VerifierService::NewStub(
            MakeChannel(cluster_.verifier().address()))) {}

  // Two drafts, 7 and 9, with rows {3, 7, 20} and {9, 11}.
  v1::VerifyRequest Good(v1::ReplyFormat format) {
    v1::VerifyRequest request;
    request.mutable_header()->set_session_id(std::string(16, 's'));
    request.mutable_header()->set_step(++step_);
    const TokenSeq prompt = {1, 2, 3};
    SetTokens(prompt, request.mutable_header()
                          ->mutable_cache_delta()
                          ->mutable_append_tokens());
    const TokenSeq drafts = {7, 9};
    SetTokens(drafts, request.mutable_draft_tokens());
    request.set_reply_format(format);
    *request.mutable_sampling() = ToProto(SamplingParams{.temperature = 1});
    request.set_seed(5);
    request.set_prompt_length(3);
    const bool tokens = format == v1::REPLY_FORMAT_TOKENS;
    using Weights = std::vector<double>;
    *request.add_draft_rows() =
        Row({3, 7, 20}, tokens ? Weights{0.25, 0.5, 0.25} : Weights{});
    *request.add_draft_rows() =
        Row({9, 11}, tokens ? Weights{0.5, 0.5} : Weights{});
    return request;
  }

  grpc::Status Verify(const v1::VerifyRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    v1::VerifyResponse response;
    return stub_->Verify(&context, request, &response);
  }

  void ExpectRefused(v1::ReplyFormat format,
                     const std::vector<MalformedRow>& rows) {
    for (const MalformedRow& row : rows) {
      SCOPED_TRACE(row.name);
      v1::VerifyRequest request = Good(format);
      row.change(request);
      const grpc::Status status = Verify(request);
      EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT)
          << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr(row.message));
      EXPECT_EQ(cluster_.verifier().num_sessions(), 0);
    }
    // The request that they were made from is fine.
    const grpc::Status status = Verify(Good(format));
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(cluster_.verifier().num_sessions(), 1);
  }

  InProcessCluster cluster_;
  std::unique_ptr<v1::VerifierService::Stub> stub_;
  uint64_t step_ = 0;
};

// What can be wrong with the ids and counts of both formats. Ids that do not
// ascend cannot be written.
std::vector<MalformedRow> BadIds() {
  const auto ids = [](TokenSeq replaced) {
    return [replaced](v1::VerifyRequest& r) {
      r.mutable_draft_rows(0)->set_packed_ids(PackIds(replaced));
    };
  };
  const auto count = [](uint32_t num_ids) {
    return [num_ids](v1::VerifyRequest& r) {
      r.mutable_draft_rows(0)->set_num_ids(num_ids);
    };
  };
  const auto bytes = [](std::string packed) {
    return [packed](v1::VerifyRequest& r) {
      r.mutable_draft_rows(0)->set_packed_ids(packed);
    };
  };
  return {
      {"one beyond the vocabulary", ids({3, 7, kVocab}), "token id 50"},
      {"nearly the largest int32", ids({3, 7, 0x7ffffffe}),
       "token id 2147483646"},
      {"beyond int32", bytes({"\x1f\xfe\xff\xff\xff\x00\x00\x00", 8}),
       "no code of 3 ids"},
      {"without its draft", ids({3, 8, 20}), "not in its own draft row"},
      {"truncated",
       [](auto& r) {
         r.mutable_draft_rows(0)->mutable_packed_ids()->pop_back();
       },
       "no code of 3 ids"},
      {"with a byte more",
       [](auto& r) {
         r.mutable_draft_rows(0)->mutable_packed_ids()->push_back('\0');
       },
       "no code of 3 ids"},
      {"an unknown parameter", bytes({"\x20\x00\x00\x00", 4}),
       "no code of 3 ids"},
      {"a run without an end", bytes(std::string(1000, '\xff')), "no code of"},
      {"more ids than its bytes can hold", count(40), "no code of 40 ids"},
      {"fewer ids than its bytes hold", count(2), "no code of 2 ids"},
      {"as many ids as nobody has", count(0xffffffff),
       "at most 16777216 ids together"},
      {"a row too few", [](auto& r) { r.mutable_draft_rows()->RemoveLast(); },
       "for 2 drafts: one for each"},
      {"a row too many", [](auto& r) { *r.add_draft_rows() = r.draft_rows(0); },
       "for 2 drafts: one for each"},
  };
}

TEST_F(MalformedRowsTest, OfIdsAloneAreRefused) {
  std::vector<MalformedRow> rows = BadIds();
  rows.push_back({"empty", [](auto& r) { r.mutable_draft_rows(0)->Clear(); },
                  "not in its own draft row"});
  ExpectRefused(v1::REPLY_FORMAT_SPARSE, rows);
}

TEST_F(MalformedRowsTest, OfIdsAndWeightsAreRefused) {
  const auto weights = [](std::vector<double> values) {
    return [values](v1::VerifyRequest& r) {
      r.mutable_draft_rows(0)->set_packed_weights(PackFloat64(values));
    };
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest = std::numeric_limits<double>::max();
  std::vector<MalformedRow> rows = BadIds();
  for (MalformedRow& row : std::vector<MalformedRow>{
           {"NaN", weights({0.25, nan, 0.25}), "positive and finite"},
           {"infinite", weights({0.25, infinity, 0.25}), "positive and finite"},
           {"negative", weights({0.25, 0.5, -0.25}), "positive and finite"},
           {"zero", weights({0.25, 0.5, 0}), "positive and finite"},
           {"all zero", weights({0, 0, 0}), "positive and finite"},
           {"a sum below 1", weights({0.25, 0.25, 0.25}), "sum to 1"},
           {"a sum above 1", weights({0.5, 0.5, 0.25}), "sum to 1"},
           {"a draft that underflows beside its neighbour",
            weights({1e308, 5e-324, 1}), "sum to 1"},
           {"a sum beyond doubles", weights({largest, largest, 1}), "overflow"},
           {"a weight too few", weights({0.5, 0.5}), "3 ids, 2 weights"},
           {"a weight too many", weights({0.25, 0.25, 0.25, 0.25}),
            "3 ids, 4 weights"},
           {"empty", [](auto& r) { r.mutable_draft_rows(0)->Clear(); },
            "1 draft rows with weights and 1 without"},
           {"without ids and weights",
            [](auto& r) {
              r.mutable_draft_rows(0)->clear_num_ids();
              r.mutable_draft_rows(0)->clear_packed_ids();
              r.mutable_draft_rows(0)->clear_packed_weights();
            },
            "at least one id"},
           {"half a weight",
            [](auto& r) {
              r.mutable_draft_rows(0)->mutable_packed_weights()->pop_back();
            },
            "bytes"},
           {"half a weight in bfloat16",
            [](auto& r) {
              std::string packed = PackBFloat16({0.25, 0.5, 0.25});
              packed.pop_back();
              r.mutable_draft_rows(0)->set_weight_dtype(v1::DTYPE_BFLOAT16);
              r.mutable_draft_rows(0)->set_packed_weights(packed);
            },
            "no code of 3 bfloat16 weights"},
           {"bfloat16 NaN",
            [](auto& r) {
              r.mutable_draft_rows(0)->set_weight_dtype(v1::DTYPE_BFLOAT16);
              // A quarter, a half with all of an exponent's bits, a quarter.
              BitWriter writer;
              writer.Put(7, 8);
              writer.Put(125, 8);
              for (const uint32_t exponent : {125u, 255u, 125u}) {
                writer.PutRice(exponent - 125, 7);
                writer.Put(64, 7);
              }
              r.mutable_draft_rows(0)->set_packed_weights(writer.Finish());
            },
            "positive and finite"},
           {"a dtype that rows do not have",
            [](auto& r) {
              r.mutable_draft_rows(0)->set_weight_dtype(v1::DTYPE_FLOAT32);
            },
            "FLOAT64 or BFLOAT16"}}) {
    rows.push_back(std::move(row));
  }
  ExpectRefused(v1::REPLY_FORMAT_TOKENS, rows);
}

}  // namespace
}  // namespace outrider::testing
