// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_ATTENTION_IMPL_H_
#define OUTRIDER_CORE_KERNELS_CPU_ATTENTION_IMPL_H_

#include <cstddef>

#include "core/kernels/cpu/elementwise_impl.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels::cpu {

// Half-open, absolute positions.
struct KeyRange {
  int begin;
  int end;
};

OUTRIDER_KERNEL_INLINE KeyRange KeysOf(const AttentionTask& task, int row) {
  const int end = task.first_position + row + 1;
  const int begin = task.window > 0 ? end - task.window : 0;
  return {begin > 0 ? begin : 0, end};
}

OUTRIDER_KERNEL_INLINE KeyRange Intersect(KeyRange a, KeyRange b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// Keys or values of some positions and one head, as float32 rows padded by
// zeros, so that no inner loop has a tail.
struct Tile {
  KeyRange range;
  const float* data;  // [range, padded_dim]
  int padded_dim;

  OUTRIDER_KERNEL_INLINE const float* row(int position) const {
    return data + padded_dim * (position - range.begin);
  }
};

template <class V, class T>
void WidenRows(const T* from, size_t from_stride, int num_rows, int size,
               float* to, int padded_dim) {
  for (int j = 0; j < num_rows; ++j) {
    const T* row = from + from_stride * static_cast<size_t>(j);
    ForEachVector<V>(static_cast<size_t>(size), [&](size_t i, int n) {
      V::Store(to + i, LoadN<V>(row + i, n));
    });
    // What only wider vectors would have covered becomes 0, too.
    for (int i = size; i < padded_dim; ++i) to[i] = 0.0f;
    to += padded_dim;
  }
}

// Calls body(from, to, count) for each part of `range` that lies in one block:
// `from` is the first position's place in the layer's memory, counted in
// positions, and `to` its place in the range.
template <class Body>
OUTRIDER_KERNEL_INLINE void ForEachBlock(const AttentionTask& task,
                                         KeyRange range, const Body& body) {
  for (int position = range.begin; position < range.end;) {
    const int place = position % kKvBlockLength;
    const int left = range.end - position;
    const int count =
        left < kKvBlockLength - place ? left : kKvBlockLength - place;
    const auto block =
        static_cast<size_t>(task.blocks[position / kKvBlockLength]);
    body(block * kKvBlockLength + place, position - range.begin, count);
    position += count;
  }
}

// Fills scratch.tile with `range` of `cache`, of the task's head.
template <class V>
Tile FillTile(const AttentionTask& task, const ConstElements& cache,
              KeyRange range, const AttentionScratch& scratch) {
  const size_t stride = static_cast<size_t>(task.num_kv_heads) * task.head_dim;
  const size_t head = static_cast<size_t>(task.kv_head) * task.head_dim;
  ForEachBlock(task, range, [&](size_t from, int to, int count) {
    float* rows = scratch.tile + scratch.padded_dim * to;
    if (cache.type == ElementType::kBFloat16) {
      WidenRows<V>(
          static_cast<const BFloat16*>(cache.data) + stride * from + head,
          stride, count, task.head_dim, rows, scratch.padded_dim);
    } else {
      WidenRows<V>(static_cast<const float*>(cache.data) + stride * from + head,
                   stride, count, task.head_dim, rows, scratch.padded_dim);
    }
  });
  return {range, scratch.tile, scratch.padded_dim};
}

// One position's keys, or its values, of all heads.
OUTRIDER_KERNEL_INLINE size_t RowBytes(const AttentionTask& task) {
  const size_t element = task.keys.type == ElementType::kBFloat16 ? 2 : 4;
  return element * task.num_kv_heads * task.head_dim;
}

// The most of a layer's keys and values that is prefetched: it must still be
// in the second cache when the last head reads it.
inline constexpr size_t kMaxPrefetchBytes = size_t{512} << 10;

// Asks for a tile's keys or values, of all heads: one stream, while the rows of
// one head lie apart, which the hardware's prefetcher does not follow. The
// weights have driven them out of the nearer caches since the last pass.
// Measured on a Zen 5, five rows, 512 keys of bfloat16: 46 us without, 41 with
// the own head's rows only, 39 with all (one row: 27, 24, 17); if all is in the
// second cache anyway it costs 1.5 us.
OUTRIDER_KERNEL_INLINE void PrefetchTile(const AttentionTask& task,
                                         const ConstElements& cache,
                                         KeyRange range) {
  const char* data = static_cast<const char*>(cache.data);
  ForEachBlock(task, range, [&](size_t from, int /*to*/, int count) {
    const char* rows = data + RowBytes(task) * from;
    const size_t num_bytes = RowBytes(task) * count;
    for (size_t i = 0; i < num_bytes; i += 64) __builtin_prefetch(rows + i);
  });
}

// scores[j] = query . key of position range.begin + j. kDim is padded_dim where
// that is known to the compiler, which then needs no pointer for each key; else
// 0.
template <class V, int kDim>
void ScoreKeys(const float* query, const Tile& keys, KeyRange range,
               int padded_dim, float* scores) {
  const int dim = kDim > 0 ? kDim : padded_dim;
  int j = range.begin;
  for (; j + V::kWidth <= range.end; j += V::kWidth) {
    const float* key = keys.row(j);
    typename V::Float sums[V::kWidth];
    for (int i = 0; i < V::kWidth; ++i) sums[i] = V::Zero();
    for (int d = 0; d < dim; d += V::kWidth) {
      const typename V::Float q = V::Load(query + d);
      for (int i = 0; i < V::kWidth; ++i) {
        sums[i] = V::MulAdd(q, V::Load(key + i * dim + d), sums[i]);
      }
    }
    V::Store(scores + (j - range.begin), V::SumEach(sums));
  }
  if (j < range.end) {
    const int left = range.end - j;
    typename V::Float sums[V::kWidth];
    for (int i = 0; i < V::kWidth; ++i) sums[i] = V::Zero();
    for (int i = 0; i < left; ++i) {
      const float* key = keys.row(j + i);
      for (int d = 0; d < dim; d += V::kWidth) {
        sums[i] = V::MulAdd(V::Load(query + d), V::Load(key + d), sums[i]);
      }
    }
    V::StoreFirst(scores + (j - range.begin), V::SumEach(sums), left);
  }
}

// Replaces scores by e^(score - maximum) and returns their sum. `scores` has
// room for whole vectors.
template <class V>
float ExpScores(float* scores, int count) {
  const int padded = (count + V::kWidth - 1) / V::kWidth * V::kWidth;
  for (int j = count; j < padded; ++j) scores[j] = -__builtin_inff();
  typename V::Float maximum = V::Load(scores);
  for (int j = V::kWidth; j < padded; j += V::kWidth) {
    maximum = V::Max(maximum, V::Load(scores + j));
  }
  const typename V::Float top = V::Set(V::MaxOf(maximum));
  typename V::Float sum = V::Zero();
  for (int j = 0; j < padded; j += V::kWidth) {
    const typename V::Float e = ExpOf<V>(V::Load(scores + j) - top);
    V::Store(scores + j, e);
    sum = sum + e;
  }
  return V::Sum(sum);
}

// sums[h] += sum over the range of weights[h][j] * value[j], for kHeads heads
// and kVectors vectors of head_dim; each sum is one chain over the positions.
template <class V, int kHeads, int kVectors>
OUTRIDER_KERNEL_INLINE void AddValues(const float* weights, int weight_stride,
                                      const Tile& values, KeyRange range,
                                      float* sums, int padded_dim, int d) {
  typename V::Float acc[kHeads][kVectors];
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVectors; ++v) {
      acc[h][v] = V::Load(sums + h * padded_dim + d + v * V::kWidth);
    }
  }
  for (int j = range.begin; j < range.end; ++j) {
    const float* value = values.row(j) + d;
    typename V::Float x[kVectors];
    for (int v = 0; v < kVectors; ++v) x[v] = V::Load(value + v * V::kWidth);
    for (int h = 0; h < kHeads; ++h) {
      const typename V::Float w =
          V::Set(weights[h * weight_stride + (j - range.begin)]);
      for (int v = 0; v < kVectors; ++v) {
        acc[h][v] = V::MulAdd(w, x[v], acc[h][v]);
      }
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVectors; ++v) {
      V::Store(sums + h * padded_dim + d + v * V::kWidth, acc[h][v]);
    }
  }
}

template <class V, int kHeads>
void AddValuesOfHeads(const float* weights, int weight_stride,
                      const Tile& values, KeyRange range, float* sums,
                      int padded_dim) {
  constexpr int kStep = V::kValueVectors * V::kWidth;
  int d = 0;
  for (; d + kStep <= padded_dim; d += kStep) {
    AddValues<V, kHeads, V::kValueVectors>(weights, weight_stride, values,
                                           range, sums, padded_dim, d);
  }
  for (; d < padded_dim; d += V::kWidth) {
    AddValues<V, kHeads, 1>(weights, weight_stride, values, range, sums,
                            padded_dim, d);
  }
}

// The heads and rows of a task. Tiles of keys outside, rows inside: a tile is
// widened once and stays in the nearest cache for all rows.
template <class V>
class HeadGroup {
 public:
  HeadGroup(const AttentionTask& task, const AttentionScratch& scratch)
      : task_(task),
        scratch_(scratch),
        heads_(task.num_heads / task.num_kv_heads),
        dim_(scratch.padded_dim) {}

  void Run() const {
    ScaleQueries();
    ForEachTile(task_.keys, &task_.values,
                [this](const Tile& keys) { Score(keys); });
    Softmax();
    ForEachTile(task_.values, nullptr,
                [this](const Tile& values) { Add(values); });
    WriteOut();
  }

 private:
  KeyRange AllKeys() const {
    return {KeysOf(task_, 0).begin, KeysOf(task_, task_.num_rows - 1).end};
  }

  // The first group fetches for all.
  bool Prefetches() const {
    const KeyRange all = AllKeys();
    return task_.kv_head == 0 &&
           2 * RowBytes(task_) * (all.end - all.begin) <= kMaxPrefetchBytes;
  }

  // Calls body(tile) for all keys, tile by tile, while the memory fetches the
  // tile after it: after the last one, the first one of `next`, if not null.
  template <class Body>
  void ForEachTile(const ConstElements& cache, const ConstElements* next,
                   const Body& body) const {
    const KeyRange all = AllKeys();
    const bool prefetches = Prefetches();
    for (int begin = all.begin; begin < all.end; begin += kTileKeys) {
      const KeyRange range = Intersect({begin, begin + kTileKeys}, all);
      const Tile tile = FillTile<V>(task_, cache, range, scratch_);
      if (prefetches && range.end < all.end) {
        PrefetchTile(task_, cache,
                     Intersect({range.end, range.end + kTileKeys}, all));
      } else if (prefetches && next != nullptr) {
        PrefetchTile(task_, *next,
                     Intersect({all.begin, all.begin + kTileKeys}, all));
      }
      body(tile);
    }
  }

  // Where the group's share of row m begins in queries and out.
  size_t Offset(int m, size_t row_stride) const {
    return row_stride * m +
           static_cast<size_t>(task_.kv_head) * heads_ * task_.head_dim;
  }

  float* Scores(int m) const {
    return scratch_.scores +
           static_cast<size_t>(scratch_.score_stride) * heads_ * m;
  }

  void ScaleQueries() const {
    const typename V::Float scale = V::Set(task_.scale);
    for (int m = 0; m < task_.num_rows; ++m) {
      const float* from = task_.queries + Offset(m, task_.query_stride);
      for (int h = 0; h < heads_; ++h) {
        float* to = scratch_.queries + (m * heads_ + h) * dim_;
        for (int d = 0; d < dim_; d += V::kWidth) V::Store(to + d, V::Zero());
        ForEachVector<V>(static_cast<size_t>(task_.head_dim),
                         [&](size_t i, int n) {
                           V::Store(to + i, LoadN<V>(from + i, n) * scale);
                         });
        from += task_.head_dim;
      }
    }
  }

  void Score(const Tile& keys) const {
    if (dim_ == 64) {
      ScoreRows<64>(keys);
    } else if (dim_ == 128) {
      ScoreRows<128>(keys);
    } else {
      ScoreRows<0>(keys);
    }
  }

  template <int kDim>
  void ScoreRows(const Tile& keys) const {
    for (int m = 0; m < task_.num_rows; ++m) {
      const KeyRange own = KeysOf(task_, m);
      const KeyRange range = Intersect(keys.range, own);
      for (int h = 0; h < heads_; ++h) {
        ScoreKeys<V, kDim>(
            scratch_.queries + (m * heads_ + h) * dim_, keys, range, dim_,
            Scores(m) + scratch_.score_stride * h + (range.begin - own.begin));
      }
    }
  }

  void Softmax() const {
    for (int m = 0; m < task_.num_rows; ++m) {
      const KeyRange own = KeysOf(task_, m);
      for (int h = 0; h < heads_; ++h) {
        const int i = m * heads_ + h;
        scratch_.totals[i] = ExpScores<V>(Scores(m) + scratch_.score_stride * h,
                                          own.end - own.begin);
        float* sums = scratch_.sums + i * dim_;
        for (int d = 0; d < dim_; d += V::kWidth) V::Store(sums + d, V::Zero());
      }
    }
  }

  void Add(const Tile& values) const {
    for (int m = 0; m < task_.num_rows; ++m) {
      const KeyRange own = KeysOf(task_, m);
      const KeyRange range = Intersect(values.range, own);
      const float* weights = Scores(m) + (range.begin - own.begin);
      float* sums = scratch_.sums + m * heads_ * dim_;
      int h = 0;
      for (; h + 4 <= heads_; h += 4) {
        AddHeads<4>(weights, h, values, range, sums);
      }
      if (heads_ - h == 3) AddHeads<3>(weights, h, values, range, sums);
      if (heads_ - h == 2) AddHeads<2>(weights, h, values, range, sums);
      if (heads_ - h == 1) AddHeads<1>(weights, h, values, range, sums);
    }
  }

  template <int kHeads>
  OUTRIDER_KERNEL_INLINE void AddHeads(const float* weights, int first_head,
                                       const Tile& values, KeyRange range,
                                       float* sums) const {
    AddValuesOfHeads<V, kHeads>(weights + scratch_.score_stride * first_head,
                                scratch_.score_stride, values, range,
                                sums + first_head * dim_, dim_);
  }

  void WriteOut() const {
    const size_t row_stride =
        static_cast<size_t>(task_.num_heads) * task_.head_dim;
    for (int m = 0; m < task_.num_rows; ++m) {
      float* to = task_.out + Offset(m, row_stride);
      for (int h = 0; h < heads_; ++h) {
        const float* sums = scratch_.sums + (m * heads_ + h) * dim_;
        const typename V::Float total = V::Set(scratch_.totals[m * heads_ + h]);
        ForEachVector<V>(static_cast<size_t>(task_.head_dim),
                         [&](size_t i, int n) {
                           StoreN<V>(to + i, V::Load(sums + i) / total, n);
                         });
        to += task_.head_dim;
      }
    }
  }

  const AttentionTask& task_;
  const AttentionScratch& scratch_;
  const int heads_;  // of the group
  const int dim_;    // padded
};

template <class V>
void Attention(const AttentionTask& task, const AttentionScratch& scratch) {
  HeadGroup<V>(task, scratch).Run();
}

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_ATTENTION_IMPL_H_
