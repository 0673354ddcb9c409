// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_PACKED_WEIGHT_H_
#define OUTRIDER_CORE_KERNELS_CUDA_PACKED_WEIGHT_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/element.h"

namespace outrider::kernels::cuda {

// A weight matrix [out, in] in the order in which the tensor cores' registers
// take it, so that a warp reads nothing but whole, consecutive 512 bytes.
//
// It is cut into tiles of kTileOut outputs by kTileIn inputs, [out / kTileOut]
// [in / kTileIn], the last ones filled up with zeros. A tile is two operands A
// of mma.m16n8k16 (mma.h), one after the other, [2][32 lanes] of 16 bytes.
// Which k of the operand is which input is free, as long as both operands
// agree: lane g * 4 + t holds, of operand h, inputs 8t + 4h to 8t + 4h + 3 of
// outputs g and g + 8, so that eight consecutive inputs of a token, one
// 16-byte load, are what that lane needs for both operands.
struct PackedMatrix {
  Element element = Element::kBFloat16;
  const void* tiles = nullptr;
  int out = 0;
  int in = 0;  // a multiple of 8
};

constexpr int kTileOut = 16;
constexpr int kTileIn = 32;

inline size_t PackedBytes(int out, int in) {
  const auto tiles = [](int size, int tile) {
    return static_cast<size_t>((size + tile - 1) / tile);
  };
  return tiles(out, kTileOut) * tiles(in, kTileIn) * kTileOut * kTileIn *
         sizeof(uint16_t);
}

// Which of the matrix's outputs the rows of a part become.
enum class Placement {
  kConsecutive,  // first_output, first_output + 1, ...
  kGate,         // row i of the part: output i % 8 of tile i / 8, and
  kUp,           // output 8 + i % 8: a lane then holds both for SiLU * mul
};

struct PackArgs {
  Element element = Element::kBFloat16;
  const void* rows = nullptr;  // [num_rows, in] as a checkpoint has them
  int num_rows = 0;
  int in = 0;
  Placement placement = Placement::kConsecutive;
  int first_output = 0;
  void* tiles = nullptr;  // PackedBytes of the whole matrix, zero at first
};

// Puts one part of a matrix (queries; keys; gate) in its place.
void Pack(const PackArgs& args, Stream stream);

struct EmbedArgs {
  PackedMatrix table = {};      // [vocab_size, size]; may be the output head
  const int* tokens = nullptr;  // [num_rows], inside the table
  const float* positions = nullptr;    // [context_length, size], or null
  const int* row_positions = nullptr;  // [num_rows], with `positions` alone
  int num_rows = 0;
  float* x = nullptr;  // [num_rows, size]
};

// The tokens' embeddings, plus those of their positions where they are learned.
void Embed(const EmbedArgs& args, Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_PACKED_WEIGHT_H_
