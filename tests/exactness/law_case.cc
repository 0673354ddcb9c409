// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/law_case.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outrider::testing {

const ToyModel& FourWords() {
  static const ToyModel model(4, DrafterKind::kCorrelated);
  return model;
}

std::string Describe(const LawCase& c) {
  return absl::StrCat(
      "V ", c.vocab_size, ", drafter ", static_cast<int>(c.drafter), ", T ",
      c.config.sampling.temperature, ", top-k ", c.config.sampling.top_k,
      ", top-p ", c.config.sampling.top_p, ", N ", c.config.support_size,
      ", format ", static_cast<int>(c.config.reply_format), ", K ",
      absl::StrJoin(c.config.draft_lengths, "/"), ", L ", c.length, ", eos ",
      absl::StrJoin(c.config.eos_ids, "/"), ", deliveries ",
      c.config.num_deliveries);
}

}  // namespace outrider::testing
