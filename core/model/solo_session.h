// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_SOLO_SESSION_H_
#define OUTRIDER_CORE_MODEL_SOLO_SESSION_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/model/causal_lm.h"

namespace outrider {

// The only session of a model, for whoever serves nobody: measurements and
// references. The model must outlive it.
class SoloSession {
 public:
  // Allocates the model's blocks: as many as `max_length` positions need.
  static absl::StatusOr<SoloSession> Open(CausalLm& model, int max_length) {
    const int num_blocks = NumKvBlocks(max_length);
    OUTRIDER_RETURN_IF_ERROR(model.AllocateKvBlocks(num_blocks));
    std::vector<KvBlockId> table;
    for (KvBlockId block = 0; block < num_blocks; ++block) {
      table.push_back(block);
    }
    return SoloSession(model, std::move(table));
  }

  // The arguments are those of an Extension.
  absl::StatusOr<LogitRows> Extend(int cached_length,
                                   absl::Span<const TokenId> tokens,
                                   int num_rows,
                                   absl::Span<const RowQuestion> questions = {},
                                   int max_drawn = 0) {
    return model_->Extend({{.blocks = table_,
                            .cached_length = cached_length,
                            .tokens = tokens,
                            .num_rows = num_rows,
                            .questions = questions,
                            .max_drawn = max_drawn}})[0];
  }

 private:
  SoloSession(CausalLm& model, std::vector<KvBlockId> table)
      : model_(&model), table_(std::move(table)) {}

  CausalLm* model_;
  std::vector<KvBlockId> table_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_SOLO_SESSION_H_
