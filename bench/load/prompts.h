// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_PROMPTS_H_
#define OUTRIDER_BENCH_LOAD_PROMPTS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/token.h"

namespace outrider::bench {

using Prompt = std::variant<std::string, TokenSeq>;

// One JSON object a line: "prompt", a text, or token ids; other fields are left
// alone, repeated prompts left out. NOT_FOUND: no such file; INVALID_ARGUMENT
// names the line.
absl::StatusOr<std::vector<Prompt>> LoadPrompts(const std::string& path);

// Token prompts for a simulated pair, each another one.
std::vector<Prompt> MakePrompts(int count, int length, int vocab_size);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_PROMPTS_H_
