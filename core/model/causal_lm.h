// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_CAUSAL_LM_H_
#define OUTRIDER_CORE_MODEL_CAUSAL_LM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/kv_block.h"
#include "core/base/row_question.h"
#include "core/base/token.h"
#include "core/model/device_counters.h"
#include "core/model/pending_pass.h"

namespace outrider {

// What a loaded model says of itself. Constant.
struct ModelInfo {
  std::string name = {};          // last component of the model directory
  std::string weights_hash = {};  // of NodeDescription
  std::string dtype = {};         // of the weights: "float32", "bfloat16"
  std::string device = {};        // "cpu", "cuda:0"
  std::string device_name = {};   // of a GPU, by its driver
  // The kernels' order of accumulation: equal logits, bit for bit, only where
  // dtype and this are equal ("avx512_bf16").
  std::string numerics = {};
  int vocab_size = 0;      // rows of the output head, padding included
  int context_length = 0;  // positions the model can attend over
  std::vector<TokenId> eos_ids = {};
  int64_t kv_block_bytes = 0;  // memory that one KV block takes, all layers
  // That memory is the text itself, which each session has for itself.
  bool blocks_are_text = false;
};

// One session's share of a forward pass. The model knows no sessions: whoever
// calls owns the block table and the length.
struct Extension {
  // blocks[i] holds the keys and values of positions [i * kKvBlockLength,
  // (i + 1) * kKvBlockLength); there is room for all tokens.
  absl::Span<const KvBlockId> blocks = {};
  int cached_length = 0;  // positions that the blocks already hold
  absl::Span<const TokenId> tokens = {};  // after those; at least one
  int num_rows = 0;                       // logits wanted, of the last tokens
  // The block that the cached positions end in is a copy of this one, made
  // before the pass writes anything: how two texts go on after one beginning.
  std::optional<KvBlockId> copied_block = {};
  // One for each of its rows, or none: what may be answered in their place.
  absl::Span<const RowQuestion> questions = {};
  // After its tokens the model may run so many more, each drawn from the row
  // before as the last question says (TopQuestion::next), and brings the row of
  // each as answered as that one. There is room for them. They may be fewer, or
  // none: whoever asks goes on by the next pass.
  int max_drawn = 0;
};

// A causal language model over KV memory in blocks. Called by one thread
// at a time, not always the same, but for Launch and Finish; it may use threads
// of its own.
class CausalLm {
 public:
  virtual ~CausalLm() = default;

  virtual const ModelInfo& info() const = 0;

  // Bytes that its device could still give to KV blocks.
  virtual int64_t AvailableKvBytes() const = 0;
  // Sets up blocks 0 to num_blocks - 1; called once, before the first Extend.
  // RESOURCE_EXHAUSTED: no memory for them.
  virtual absl::Status AllocateKvBlocks(int num_blocks) = 0;
  // Does whatever would make the first passes slower than others; called before
  // it serves, once it has blocks. UNAVAILABLE: the device is lost.
  virtual absl::Status Prepare() { return absl::OkStatus(); }

  // Runs all extensions in one ragged pass: [num_rows, vocab_size] logits each,
  // and a row more for each token that it drew; row i belongs to the position
  // of the i-th of the last num_rows tokens and predicts the token after it.
  // Writes the tokens' keys and values; what a block holds after the positions
  // written is garbage that nobody reads. Extensions may share blocks that none
  // of them writes. Rows with questions may be answered.
  //
  // A row's bits depend on its own context alone: not on the other extensions,
  // on how its prompt was cut into passes, on which blocks it lies in, nor on
  // the number of threads.
  //
  // One that fails leaves the others untouched:
  //   INVALID_ARGUMENT    a token outside [0, vocab_size), no token, more rows
  //                       than tokens, more than context_length positions, a
  //                       table too short for them
  //   RESOURCE_EXHAUSTED  no memory for the pass
  //   UNAVAILABLE         the device is lost: so is the model
  PassResults Extend(absl::Span<const Extension> batch) {
    return Launch(batch)->Finish();
  }
  // The first half of that: begins the pass, or runs it, where that takes the
  // host's cores. The batch and what it names stay as they are until Finish.
  // Passes run in the order of their launches, as one after the other.
  virtual std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) = 0;
  // How many may be launched before the first of them is finished; they are
  // finished in their order. Where they are more than one, the next one may be
  // launched by one thread while another one finishes the first.
  virtual int num_in_flight() const { return 1; }

  // Whether it answers questions about rows: who has rows in host memory need
  // not look at these, and nobody ask them.
  virtual bool answers_questions() const { return false; }

  // Null where it has no device of its own.
  virtual const DeviceCounters* device_counters() const { return nullptr; }
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_CAUSAL_LM_H_
