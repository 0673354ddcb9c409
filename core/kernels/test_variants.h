// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_TEST_VARIANTS_H_
#define OUTRIDER_CORE_KERNELS_TEST_VARIANTS_H_

#include <string>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/kernels/dispatch.h"
#include "gtest/gtest.h"

namespace outrider::kernels {

// Both element types at every level of this CPU, for parametrised tests.
struct Variant {
  ElementType type;
  Level level;
};

inline std::vector<Variant> AllVariants() {
  std::vector<Variant> all;
  for (const Level level : SupportedLevels()) {
    all.push_back({ElementType::kFloat32, level});
    all.push_back({ElementType::kBFloat16, level});
  }
  return all;
}

inline std::string VariantName(const ::testing::TestParamInfo<Variant>& test) {
  const bool bfloat16 = test.param.type == ElementType::kBFloat16;
  return std::string(LevelName(test.param.level)) +
         (bfloat16 ? "_bfloat16" : "_float32");
}

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_TEST_VARIANTS_H_
