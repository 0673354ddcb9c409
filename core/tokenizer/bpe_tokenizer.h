// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TOKENIZER_BPE_TOKENIZER_H_
#define OUTRIDER_CORE_TOKENIZER_BPE_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/token.h"
#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/token_decoder.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/tokenizer_spec.h"

namespace outrider {

// Byte-pair encoding with everything around it: added tokens are taken out,
// the text between them is normalised, cut into pieces and merged. Immutable
// and thread-safe; decoders must not outlive it.
class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(const TokenizerSpec& spec,
                        std::optional<TokenId> eos_id = std::nullopt);

  std::vector<TokenId> Encode(absl::string_view text) const override;
  std::optional<size_t> max_bytes_per_token() const override {
    return max_bytes_per_token_;
  }
  std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> before) const override;
  int vocab_size() const override { return decoder_.vocab_size(); }
  std::optional<TokenId> eos_id() const override { return eos_id_; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  // Text between added tokens that are searched for before normalisation.
  void EncodeSegment(absl::string_view text, bool is_first,
                     TokenSeq* out) const;

  const std::vector<NormalizerStep> normalizer_;
  const PretokenizerSpec pretokenizer_;
  const std::vector<TokenId> prefix_;
  const std::vector<TokenId> suffix_;
  const AddedTokenFinder added_before_normalizing_;
  const AddedTokenFinder added_after_normalizing_;
  const BpeModel model_;
  const TokenDecoder decoder_;
  const std::optional<TokenId> eos_id_;
  const std::string fingerprint_;
  const std::optional<size_t> max_bytes_per_token_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TOKENIZER_BPE_TOKENIZER_H_
