// SPDX-License-Identifier: Apache-2.0
// What a coordinator keeps of a request while its stream goes on.
#include <grpcpp/client_context.h>
#include <malloc.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/rpc/channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "outrider/v1/generation.grpc.pb.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

// Every text is one token, however long it is.
class ShortTokenizer final : public Tokenizer {
 public:
  std::vector<TokenId> Encode(absl::string_view /*text*/) const override {
    return {5};
  }
  std::optional<size_t> max_bytes_per_token() const override {
    return std::nullopt;
  }
  std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> /*before*/) const override {
    class Silent final : public StreamingDecoder {
      std::string Append(TokenId /*token*/) override { return ""; }
      std::string Finish() override { return ""; }
    };
    return std::make_unique<Silent>();
  }
  int vocab_size() const override { return kVocab; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  const std::string fingerprint_ = "same";
};

// A sanitizer has an allocator of its own, of which this says nothing.
size_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(RequestMemoryTest, AStreamThatGoesOnDoesNotKeepItsText) {
  Hold hold;
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.tokenizer = std::make_shared<ShortTokenizer>();
  options.target.table = ActInRound(options.target.table, 100, act);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  const auto stub =
      v1::GenerationService::NewStub(MakeChannel(cluster.server().address()));
  const auto run = [&](size_t bytes, int num_tokens) {
    v1::GenerateRequest request;
    request.set_text(std::string(bytes, 'x'));
    request.set_max_tokens(num_tokens);
    request.set_temperature(0);
    request.set_ignore_eos(true);
    grpc::ClientContext context;
    const auto reader = stub->Generate(&context, request);
    request = {};
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
    }
    EXPECT_TRUE(reader->Finish().ok());
  };
  run(/*bytes=*/1, /*num_tokens=*/1);  // for what is taken once
  act = [&] { hold.Wait(); };
  const size_t before = BytesInUse();
  std::jthread stream([&] { run(/*bytes=*/7 << 20, /*num_tokens=*/200); });
  hold.AwaitStream();
  // A connection that got large messages has some MiB to read into.
  EXPECT_LT(BytesInUse(), before + (5 << 20));
  hold.Release();
}

}  // namespace
}  // namespace outrider::testing
