// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_SIMULATED_LM_H_
#define OUTRIDER_CORE_MODEL_SIMULATED_LM_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/model/block_entries.h"
#include "core/model/causal_lm.h"

namespace outrider {

// A timing model in place of weights: a pass takes pass_time + row_time for
// each token of all its extensions, and its logits are a table made by hashing
// the context. Target and draft are made for each other: in a share
// `acceptance` of all contexts, picked by their hash, the draft's row is the
// target's, and in the others the two have no token in common. So a draft token
// is accepted with that probability, independently of the others, whatever the
// temperature, top-k and top-p. In a share `outcome_hit` of those others, the
// target's tokens come next in the draft's row, with no mass to speak of: so it
// can guess what a refused draft is replaced by. One thread at a time.
class SimulatedLm final : public CausalLm {
 public:
  using Clock = std::chrono::steady_clock;
  using SleepUntil = std::function<void(Clock::time_point)>;

  struct Options {
    std::string name = "simulated";
    std::chrono::nanoseconds pass_time = {};
    std::chrono::nanoseconds row_time = {};  // each token of the pass
    double acceptance = 1;                   // in [0, 1]; 1: the target itself
    double outcome_hit = 0;                  // in [0, 1]
    int vocab_size = 256;                    // at least kMinVocabSize
    int context_length = 1 << 16;
    int64_t kv_bytes = int64_t{64} << 20;  // what it has for KV blocks
    SleepUntil sleep_until = {};           // empty: really
  };
  static constexpr int kMinVocabSize = 16;

  explicit SimulatedLm(Options options);

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override { return available_kv_bytes_; }
  absl::Status AllocateKvBlocks(int num_blocks) override;
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override;

 private:
  LogitRows ExtendOne(const Extension& extension);
  // [vocab_size]; of the token after the context with this hash.
  void AppendRow(uint64_t context_hash, std::vector<float>& values) const;

  const Options options_;
  const ModelInfo info_;
  int64_t available_kv_bytes_;
  const std::vector<float> impossible_;  // a row that allows no token
  BlockEntries<uint64_t> hashes_{0};     // of the tokens up to a position
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_SIMULATED_LM_H_
