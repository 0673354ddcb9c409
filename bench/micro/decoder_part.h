// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_DECODER_PART_H_
#define OUTRIDER_BENCH_MICRO_DECODER_PART_H_

#include <cstddef>
#include <functional>

namespace outrider {

// What is timed: launches that differ in nothing but the memory they read.
struct DecoderPart {
  const char* name = "";
  int num_launches = 1;  // of a graph
  std::function<void(int)> launch = {};
  int num_in_pass = 0;
  bool is_pass = false;     // the whole of it
  size_t weight_bytes = 0;  // that a launch reads
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_DECODER_PART_H_
