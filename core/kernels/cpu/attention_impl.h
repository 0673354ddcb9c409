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

OUTRIDER_KERNEL_INLINE KeyRange KeysOf(const AttentionArgs& args, int row) {
  const int end = args.first_position + row + 1;
  const int begin = args.window > 0 ? end - args.window : 0;
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
               const AttentionScratch& scratch) {
  for (int j = 0; j < num_rows; ++j) {
    const T* row = from + from_stride * static_cast<size_t>(j);
    float* to = scratch.tile + scratch.padded_dim * j;
    ForEachVector<V>(static_cast<size_t>(size), [&](size_t i, int n) {
      V::Store(to + i, LoadN<V>(row + i, n));
    });
    // Also what only wider vectors would have covered.
    for (int i = size; i < scratch.padded_dim; ++i) to[i] = 0.0f;
  }
}

// Fills scratch.tile with `range` of `cache`, of head `kv_head`.
template <class V>
Tile FillTile(const AttentionArgs& args, const ConstElements& cache,
              int kv_head, KeyRange range, const AttentionScratch& scratch) {
  const size_t stride = static_cast<size_t>(args.num_kv_heads) * args.head_dim;
  const size_t offset =
      stride * range.begin + static_cast<size_t>(kv_head) * args.head_dim;
  const int num_rows = range.end - range.begin;
  if (cache.type == ElementType::kBFloat16) {
    WidenRows<V>(static_cast<const BFloat16*>(cache.data) + offset, stride,
                 num_rows, args.head_dim, scratch);
  } else {
    WidenRows<V>(static_cast<const float*>(cache.data) + offset, stride,
                 num_rows, args.head_dim, scratch);
  }
  return {range, scratch.tile, scratch.padded_dim};
}

// One position's keys, or its values, of all heads.
OUTRIDER_KERNEL_INLINE size_t RowBytes(const AttentionArgs& args) {
  const size_t element = args.keys.type == ElementType::kBFloat16 ? 2 : 4;
  return element * args.num_kv_heads * args.head_dim;
}

// The most of a layer's keys and values that is prefetched: it must still be
// in the second cache when the last head reads it.
inline constexpr size_t kMaxPrefetchBytes = size_t{512} << 10;

// Asks for a tile's keys or values, of all heads: one stream, while the rows of
// one head lie apart, which the hardware's prefetcher does not follow. Since
// the last pass the weights have driven them out of the nearer caches. Measured
// on a Zen 5, five rows, 512 keys of bfloat16: 46 us without, 41 with the own
// head's rows only, 39 with all (one row: 27, 24, 17); if all is in the second
// cache anyway it costs 1.5 us.
OUTRIDER_KERNEL_INLINE void PrefetchTile(const AttentionArgs& args,
                                         const ConstElements& cache,
                                         KeyRange range) {
  const char* data =
      static_cast<const char*>(cache.data) + RowBytes(args) * range.begin;
  const size_t num_bytes = RowBytes(args) * (range.end - range.begin);
  for (size_t i = 0; i < num_bytes; i += 64) __builtin_prefetch(data + i);
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

// All heads that share the keys and values of `kv_head`, for at most
// kAttentionRows rows. Blocks of keys outside, rows inside: a tile is widened
// once and stays in the nearest cache for all rows.
template <class V>
class HeadGroup {
 public:
  HeadGroup(const AttentionArgs& args, const AttentionScratch& scratch,
            int kv_head)
      : args_(args),
        scratch_(scratch),
        kv_head_(kv_head),
        heads_(args.num_heads / args.num_kv_heads),
        dim_(scratch.padded_dim) {}

  void Run() const {
    ScaleQueries();
    ForEachBlock(args_.keys, &args_.values,
                 [this](const Tile& keys) { Score(keys); });
    Softmax();
    ForEachBlock(args_.values, nullptr,
                 [this](const Tile& values) { Add(values); });
    WriteOut();
  }

 private:
  KeyRange AllKeys() const {
    return {KeysOf(args_, 0).begin, KeysOf(args_, args_.num_rows - 1).end};
  }

  // The first group fetches for all.
  bool Prefetches() const {
    const KeyRange all = AllKeys();
    return kv_head_ == 0 &&
           2 * RowBytes(args_) * (all.end - all.begin) <= kMaxPrefetchBytes;
  }

  // Calls body(tile) for all keys, block by block, while the memory fetches the
  // block after it: behind the last one, the first one of `next`, if not null.
  template <class Body>
  void ForEachBlock(const ConstElements& cache, const ConstElements* next,
                    const Body& body) const {
    const KeyRange all = AllKeys();
    const bool prefetches = Prefetches();
    for (int begin = all.begin; begin < all.end; begin += kTileKeys) {
      const KeyRange block = Intersect({begin, begin + kTileKeys}, all);
      const Tile tile = FillTile<V>(args_, cache, kv_head_, block, scratch_);
      if (prefetches && block.end < all.end) {
        PrefetchTile(args_, cache,
                     Intersect({block.end, block.end + kTileKeys}, all));
      } else if (prefetches && next != nullptr) {
        PrefetchTile(args_, *next,
                     Intersect({all.begin, all.begin + kTileKeys}, all));
      }
      body(tile);
    }
  }

  // Where the group's share of row m begins in queries and out.
  size_t Offset(int m, size_t row_stride) const {
    return row_stride * m +
           static_cast<size_t>(kv_head_) * heads_ * args_.head_dim;
  }

  float* Scores(int m) const {
    return scratch_.scores +
           static_cast<size_t>(scratch_.score_stride) * heads_ * m;
  }

  void ScaleQueries() const {
    const typename V::Float scale = V::Set(args_.scale);
    for (int m = 0; m < args_.num_rows; ++m) {
      const float* from = args_.queries + Offset(m, args_.query_stride);
      for (int h = 0; h < heads_; ++h) {
        float* to = scratch_.queries + (m * heads_ + h) * dim_;
        for (int d = 0; d < dim_; d += V::kWidth) V::Store(to + d, V::Zero());
        ForEachVector<V>(static_cast<size_t>(args_.head_dim),
                         [&](size_t i, int n) {
                           V::Store(to + i, LoadN<V>(from + i, n) * scale);
                         });
        from += args_.head_dim;
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
    for (int m = 0; m < args_.num_rows; ++m) {
      const KeyRange own = KeysOf(args_, m);
      const KeyRange range = Intersect(keys.range, own);
      for (int h = 0; h < heads_; ++h) {
        ScoreKeys<V, kDim>(
            scratch_.queries + (m * heads_ + h) * dim_, keys, range, dim_,
            Scores(m) + scratch_.score_stride * h + (range.begin - own.begin));
      }
    }
  }

  void Softmax() const {
    for (int m = 0; m < args_.num_rows; ++m) {
      const KeyRange own = KeysOf(args_, m);
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
    for (int m = 0; m < args_.num_rows; ++m) {
      const KeyRange own = KeysOf(args_, m);
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
        static_cast<size_t>(args_.num_heads) * args_.head_dim;
    for (int m = 0; m < args_.num_rows; ++m) {
      float* to = args_.out + Offset(m, row_stride);
      for (int h = 0; h < heads_; ++h) {
        const float* sums = scratch_.sums + (m * heads_ + h) * dim_;
        const typename V::Float total = V::Set(scratch_.totals[m * heads_ + h]);
        ForEachVector<V>(static_cast<size_t>(args_.head_dim),
                         [&](size_t i, int n) {
                           StoreN<V>(to + i, V::Load(sums + i) / total, n);
                         });
        to += args_.head_dim;
      }
    }
  }

  const AttentionArgs& args_;
  const AttentionScratch& scratch_;
  const int kv_head_;
  const int heads_;  // of the group
  const int dim_;    // padded
};

template <class V>
void Attention(const AttentionArgs& args, const AttentionScratch& scratch) {
  for (int kv_head = 0; kv_head < args.num_kv_heads; ++kv_head) {
    HeadGroup<V>(args, scratch, kv_head).Run();
  }
}

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_ATTENTION_IMPL_H_
