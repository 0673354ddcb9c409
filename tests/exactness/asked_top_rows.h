// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_ASKED_TOP_ROWS_H_
#define OUTRIDER_TESTS_EXACTNESS_ASKED_TOP_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/base/row_question.h"
#include "core/kernels/cuda/top_rows.h"
#include "gtest/gtest.h"

namespace outrider::testing {

// A row of logits, and what is asked of it.
struct TopAsked {
  std::vector<float> logits = {};
  int vocab_size = 0;  // 0: as many as logits
  int count = 1;
  double temperature = 1;
  std::vector<TokenId> tokens = {};

  int size() const {
    return vocab_size > 0 ? vocab_size : static_cast<int>(logits.size());
  }
};

struct TopTold {
  kernels::cuda::TopRowResult result = {};
  TopAnswer answer = {};
};

// What kernels::cuda::TopRows tells of all of them, in one launch; their rows
// are equally long.
std::vector<TopTold> AskTopRows(const std::vector<TopAsked>& all);

// It is what the definition gives (AnswerOnHost).
void ExpectAsDefined(const TopAsked& asked, const TopTold& told);

// Runs threads in the order of its parameter, with other logits each time.
class DeviceTopRowsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceTopRowsTest();

  static std::vector<float> TopLogits(int size, uint32_t seed, float spread);
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_ASKED_TOP_ROWS_H_
