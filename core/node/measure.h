// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_MEASURE_H_
#define OUTRIDER_CORE_NODE_MEASURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/node/load_model.h"

namespace outrider {

struct MeasureOptions {
  int vocab_size = 0;        // the tokenizer's
  int context_length = 128;  // tokens cached before what is timed
  int max_rows = 9;
  int num_repeats = 30;   // of each pass; the median counts
  int num_decoded = 128;  // tokens of one plain decoding
};

// What a model does inside this process, without any RPC: the honest baseline
// of every speed-up that is printed.
struct ModelMeasurement {
  std::vector<double> rows_seconds = {};  // T(1), T(2), ...: medians
  // T(1) after a pause, as passes come where a node serves one client: caches
  // that others share have lost some of the weights by then. A median.
  double paused_seconds = 0;
  double plain_tokens_per_second = 0;  // greedy, token by token
  // The same at temperature 1, where each token is drawn from its whole row.
  double plain_sampled_tokens_per_second = 0;
  // Whether a row's logits change, in any bit, with the number of rows beside
  // it: then greedy output may differ from plain decoding's where the two best
  // logits are this close.
  bool rows_depend_on_count = false;
  double max_logit_difference = 0;  // infinite where one is no number
};

// Measures a model that has no KV blocks yet: it gets those of one session.
// INVALID_ARGUMENT where its context is too short, with the least that is not.
absl::StatusOr<ModelMeasurement> MeasureModel(CausalLm& model,
                                              const MeasureOptions& options);

// INVALID_ARGUMENT says the least where a context is shorter.
absl::Status CheckContext(int context_length, int least);

// What people read, and one JSON object.
std::string ToText(const ModelMeasurement& measurement, const ModelInfo& info);
std::string ToJson(const ModelMeasurement& measurement, const ModelInfo& info);

// Writes it to standard output. UNAVAILABLE where that cannot be done.
absl::Status Print(const std::string& text);

// A verifier's --measure: measures and prints, as the flags say.
absl::Status PrintModelMeasurement(const NodeFlags& flags, LoadedModel& loaded);

// The middle value; of an even number the lower one. Not empty.
double Median(std::vector<double> values);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_MEASURE_H_
