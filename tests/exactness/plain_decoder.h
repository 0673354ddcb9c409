// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_PLAIN_DECODER_H_
#define OUTRIDER_TESTS_EXACTNESS_PLAIN_DECODER_H_

#include <map>
#include <vector>

#include "core/base/token.h"
#include "core/sampling/sampling_params.h"
#include "tests/exactness/toy_model.h"

namespace outrider::testing {

using Law = std::map<TokenSeq, double>;

// The law of the first `length` tokens that plain sampling from the target
// gives after a prompt; a sequence ends at the first of `eos_ids`. Shares no
// code with production on purpose: its own penalties, softmax, min-p,
// top-k and top-p.
Law PlainLaw(const ToyModel& model, const SamplingParams& params,
             const TokenSeq& prompt, int length,
             const std::vector<TokenId>& eos_ids);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_PLAIN_DECODER_H_
