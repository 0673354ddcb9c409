// SPDX-License-Identifier: Apache-2.0
// A GenerateRequest of anybody's at a coordinator, and a GenerateResponse of
// anybody's at a client.
#include <iterator>
#include <memory>

#include "coordinator/service/generation_request.h"
#include "core/sampling/sampling_params.h"
#include "core/session/check_tokens.h"
#include "core/testing/golden_files.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/wire/generation_convert.h"
#include "tests/fuzz/fuzz_input.h"

namespace outrider::testing {
namespace {

GenerationLimits LimitsHere() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      *LoadTokenizer(GoldenDirectory("gpt2"));
  return {
      .tokenizer = tokenizer.get(),
      .vocab_size = tokenizer->vocab_size(),
      .context_length = 512,
      .longest_text = 512,
      .max_draft_tokens = 16,
      .most_draft_tokens = 16,
      .default_draft_tokens = 5,
      .eos_ids = {0},
      .reply_formats = {std::begin(kReplyFormats), std::end(kReplyFormats)},
      .rules = {RuleKind::kRejection, RuleKind::kCoupled, RuleKind::kBlock}};
}

void AtTheCoordinator(const std::string& bytes) {
  static const GenerationLimits limits = LimitsHere();
  v1::GenerateRequest proto;
  if (!proto.ParseFromString(bytes)) return;
  WantedModelOf(proto);
  const auto request = ParseRequest(proto, limits);
  if (!request.ok()) {
    CheckRefusal(request.status());
    return;
  }
  OUTRIDER_CHECK(!request->prompt.empty());
  OUTRIDER_CHECK(CheckTokens(request->prompt, limits.vocab_size).ok());
  OUTRIDER_CHECK(CheckTokens(request->delivered, limits.vocab_size).ok());
  OUTRIDER_CHECK(Validate(request->sampling, limits.vocab_size).ok());
  OUTRIDER_CHECK(request->max_length <= limits.context_length);
  OUTRIDER_CHECK(request->prompt.size() + request->delivered.size() <=
                 static_cast<size_t>(request->max_length));
  OUTRIDER_CHECK(request->num_speculative_tokens <= limits.max_draft_tokens);
}

void AtTheClient(const std::string& bytes) {
  v1::GenerateResponse response;
  if (!response.ParseFromString(bytes)) return;
  const v1::GenerateResponse written = ToProto(FromProto(response));
  OUTRIDER_CHECK(ToProto(FromProto(written)).SerializeAsString() ==
                 written.SerializeAsString());
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider::testing;  // NOLINT: a program of one function
  const MessagePair messages = MessagePair::Of(AsText(data, size));
  AtTheCoordinator(messages.first);
  AtTheClient(messages.second);
  return 0;
}
