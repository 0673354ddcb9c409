// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_BFLOAT16_H_
#define OUTRIDER_CORE_KERNELS_BFLOAT16_H_

#include "core/base/bfloat16.h"

namespace outrider::kernels {

using outrider::BFloat16;
using outrider::ToBFloat16;
using outrider::ToFloat;

// What weights and caches are made of; activations are always float32.
enum class ElementType { kFloat32, kBFloat16 };

// Elements to read, of a type known at run time. Does not own them.
struct ConstElements {
  ConstElements() = default;
  ConstElements(const float* elements) : data(elements) {}
  ConstElements(const BFloat16* elements)
      : type(ElementType::kBFloat16), data(elements) {}

  ElementType type = ElementType::kFloat32;
  const void* data = nullptr;
};

// Elements to write, of a type known at run time. Does not own them.
struct Elements {
  Elements() = default;
  Elements(float* elements) : data(elements) {}
  Elements(BFloat16* elements) : type(ElementType::kBFloat16), data(elements) {}

  ElementType type = ElementType::kFloat32;
  void* data = nullptr;
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_BFLOAT16_H_
