// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_ELEMENTWISE_IMPL_H_
#define OUTRIDER_CORE_KERNELS_CPU_ELEMENTWISE_IMPL_H_

#include <cstddef>

#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels::cpu {

// Calls body(offset, n) for [0, count) in steps of kWidth lanes, n < kWidth for
// the last one only.
template <class V, class Body>
OUTRIDER_KERNEL_INLINE void ForEachVector(size_t count, const Body& body) {
  size_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) body(i, V::kWidth);
  if (i < count) body(i, static_cast<int>(count - i));
}

// LoadFirst, StoreFirst, with a quicker path for full vectors.
template <class V, class T>
OUTRIDER_KERNEL_INLINE typename V::Float LoadN(const T* p, int n) {
  return n == V::kWidth ? V::Load(p) : V::LoadFirst(p, n);
}
template <class V>
OUTRIDER_KERNEL_INLINE void StoreN(float* p, typename V::Float x, int n) {
  n == V::kWidth ? V::Store(p, x) : V::StoreFirst(p, x, n);
}

// e^x = 2^n e^r with |r| <= ln(2) / 2; the polynomial is that of Cephes' expf.
// Beyond the limits the result is 0 or infinite.
template <class V>
OUTRIDER_KERNEL_INLINE typename V::Float ExpOf(typename V::Float x) {
  x = V::Min(V::Set(89.0f), V::Max(V::Set(-104.0f), x));
  const typename V::Float n = V::Round(x * V::Set(0x1.715476p+0f));
  // ln(2) in two parts, of which n times the first one is exact.
  typename V::Float r = V::MulAdd(n, V::Set(-0.693359375f), x);
  r = V::MulAdd(n, V::Set(2.12194440e-4f), r);
  typename V::Float p = V::Set(1.9875691500e-4f);
  p = V::MulAdd(p, r, V::Set(1.3981999507e-3f));
  p = V::MulAdd(p, r, V::Set(8.3334519073e-3f));
  p = V::MulAdd(p, r, V::Set(4.1665795894e-2f));
  p = V::MulAdd(p, r, V::Set(1.6666665459e-1f));
  p = V::MulAdd(p, r, V::Set(5.0000001201e-1f));
  p = V::MulAdd(p, r * r, r) + V::Set(1.0f);
  return V::ScaleByPowerOfTwo(p, n);
}

template <class V>
void Exp(const float* x, float* y, size_t count) {
  ForEachVector<V>(count, [&](size_t i, int n) {
    StoreN<V>(y + i, ExpOf<V>(LoadN<V>(x + i, n)), n);
  });
}

// 1 / (1 + e^-x)
template <class V>
OUTRIDER_KERNEL_INLINE typename V::Float SigmoidOf(typename V::Float x) {
  const typename V::Float one = V::Set(1.0f);
  return one / (one + ExpOf<V>(V::Zero() - x));
}

template <class V>
void SiluMul(const SiluMulArgs& args) {
  const size_t size = static_cast<size_t>(args.size);
  for (int m = 0; m < args.num_rows; ++m) {
    const float* gate = args.gate_up + 2 * size * m;
    const float* up = gate + size;
    float* y = args.y + size * m;
    ForEachVector<V>(size, [&](size_t i, int n) {
      const typename V::Float g = LoadN<V>(gate + i, n);
      StoreN<V>(y + i, g * SigmoidOf<V>(g) * LoadN<V>(up + i, n), n);
    });
  }
}

// (1 + tanh(z)) / 2 is the sigmoid of 2 z.
template <class V>
void GeluNew(float* x, size_t count) {
  const float two_sqrt_two_over_pi = 1.5957691216057308f;
  ForEachVector<V>(count, [&](size_t i, int n) {
    const typename V::Float a = LoadN<V>(x + i, n);
    const typename V::Float inner =
        a * V::MulAdd(a * a, V::Set(0.044715f), V::Set(1.0f));
    const typename V::Float z = inner * V::Set(two_sqrt_two_over_pi);
    StoreN<V>(x + i, a * SigmoidOf<V>(z), n);
  });
}

template <class V>
void RmsNorm(const NormArgs& args) {
  const size_t size = static_cast<size_t>(args.size);
  for (int m = 0; m < args.num_rows; ++m) {
    const float* x = args.x + size * m;
    float* y = args.y + size * m;
    typename V::Float squares = V::Zero();
    ForEachVector<V>(size, [&](size_t i, int n) {
      const typename V::Float a = LoadN<V>(x + i, n);
      squares = V::MulAdd(a, a, squares);
    });
    const float mean = V::Sum(squares) / static_cast<float>(args.size);
    const typename V::Float factor =
        V::Set(1.0f / __builtin_sqrtf(mean + args.epsilon));
    ForEachVector<V>(size, [&](size_t i, int n) {
      StoreN<V>(y + i,
                LoadN<V>(x + i, n) * factor * LoadN<V>(args.weight + i, n), n);
    });
  }
}

template <class V>
void LayerNorm(const NormArgs& args) {
  const size_t size = static_cast<size_t>(args.size);
  for (int m = 0; m < args.num_rows; ++m) {
    const float* x = args.x + size * m;
    float* y = args.y + size * m;
    typename V::Float sum = V::Zero();
    ForEachVector<V>(size,
                     [&](size_t i, int n) { sum = sum + LoadN<V>(x + i, n); });
    const typename V::Float mean =
        V::Set(V::Sum(sum) / static_cast<float>(args.size));
    typename V::Float squares = V::Zero();
    ForEachVector<V>(size, [&](size_t i, int n) {
      const typename V::Float a = V::KeepFirst(LoadN<V>(x + i, n) - mean, n);
      squares = V::MulAdd(a, a, squares);
    });
    const float variance = V::Sum(squares) / static_cast<float>(args.size);
    const typename V::Float factor =
        V::Set(1.0f / __builtin_sqrtf(variance + args.epsilon));
    ForEachVector<V>(size, [&](size_t i, int n) {
      const typename V::Float bias =
          args.bias != nullptr ? LoadN<V>(args.bias + i, n) : V::Zero();
      const typename V::Float a = (LoadN<V>(x + i, n) - mean) * factor;
      StoreN<V>(y + i, V::MulAdd(a, LoadN<V>(args.weight + i, n), bias), n);
    });
  }
}

template <class V>
void ApplyRope(const RopeArgs& args) {
  const size_t half = static_cast<size_t>(args.head_dim) / 2;
  for (int m = 0; m < args.num_rows; ++m) {
    const float* cos = args.cos + half * (args.first_position + m);
    const float* sin = args.sin + half * (args.first_position + m);
    for (int head = 0; head < args.num_heads; ++head) {
      float* lower =
          args.x + static_cast<size_t>(args.row_stride) * m + 2 * half * head;
      float* upper = lower + half;
      ForEachVector<V>(half, [&](size_t i, int n) {
        const typename V::Float c = LoadN<V>(cos + i, n);
        const typename V::Float s = LoadN<V>(sin + i, n);
        const typename V::Float a = LoadN<V>(lower + i, n);
        const typename V::Float b = LoadN<V>(upper + i, n);
        StoreN<V>(lower + i, a * c - b * s, n);
        StoreN<V>(upper + i, b * c + a * s, n);
      });
    }
  }
}

template <class V>
void StoreRows(const StoreTask& task) {
  const size_t size = static_cast<size_t>(task.row_size);
  for (int m = 0; m < task.num_rows; ++m) {
    const float* from = task.from + static_cast<size_t>(task.from_stride) * m;
    if (task.to.type == ElementType::kBFloat16) {
      BFloat16* to = static_cast<BFloat16*>(task.to.data) + size * m;
      ForEachVector<V>(size, [&](size_t i, int n) {
        V::StoreFirst(to + i, LoadN<V>(from + i, n), n);
      });
    } else {
      float* to = static_cast<float*>(task.to.data) + size * m;
      ForEachVector<V>(size, [&](size_t i, int n) {
        StoreN<V>(to + i, LoadN<V>(from + i, n), n);
      });
    }
  }
}

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_ELEMENTWISE_IMPL_H_
