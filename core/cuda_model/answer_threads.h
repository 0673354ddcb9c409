// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_ANSWER_THREADS_H_
#define OUTRIDER_CORE_CUDA_MODEL_ANSWER_THREADS_H_

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "core/base/available_cores.h"
#include "core/kernels/thread_pool.h"

namespace outrider {

// Who looks at the answers of a pass. Whether one decides is known once its
// distribution is made (TopQuestion::suffices), which takes some 10 us for a
// thousand logits. All of that is in the pass, and the device idles meanwhile:
// so threads share it where it is much. Thread-safe; whoever comes while others
// are at it looks at all of his own.
class AnswerThreads {
 public:
  struct Options {
    // The one that brings the pass is among them. 0: half of the cores, as
    // others take rows meanwhile, and at most four.
    int num_threads = 0;
    // Each looks at so many before it takes more. Less than two such parts for
    // each thread are not shared: to wake one costs as much as a part.
    int logits_of_part = 2048;
  };

  explicit AnswerThreads(const Options& options)
      : logits_of_part_(options.logits_of_part),
        pool_(options.num_threads > 0
                  ? options.num_threads
                  : std::clamp(AvailableCores() / 2, 1, 4)) {}

  // Calls look(i) once for each of so many rows, at the same time for several
  // where their answers have many logits together.
  void ForEachRow(int num_rows, int num_logits,
                  absl::FunctionRef<void(int i)> look) {
    if (num_logits / 2 < logits_of_part_ * pool_.num_threads()) {
      for (int i = 0; i < num_rows; ++i) look(i);
      return;
    }
    const int num_parts = std::min(num_rows, num_logits / logits_of_part_);
    pool_.Run(num_parts, [&](int part) {
      const int end = num_rows * (part + 1) / num_parts;
      for (int i = num_rows * part / num_parts; i < end; ++i) look(i);
    });
  }

 private:
  const int logits_of_part_;
  kernels::ThreadPool pool_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_ANSWER_THREADS_H_
