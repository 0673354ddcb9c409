// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_CUDA_DECODER_H_
#define OUTRIDER_BENCH_MICRO_CUDA_DECODER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/micro/decoder_part.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/step_inputs.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

// A model of the Llama family.
struct DecoderShape {
  const char* name = "";
  int vocab_size = 0;
  int hidden = 0;
  int inner = 0;
  int num_layers = 0;
  kernels::cuda::Heads heads = {};

  int q_size() const { return heads.num_heads * heads.head_dim; }
  int kv_size() const { return heads.num_kv_heads * heads.head_dim; }
  int qkv_size() const { return q_size() + 2 * kv_size(); }
};

struct DecoderLimits {
  int rows = 0;           // of a pass
  int num_keys = 0;       // of each session, the pass's own included
  size_t cold_bytes = 0;  // read before the same memory is read again
};

// The weights, keys and activations of a decoder on a GPU, and its kernels as
// CudaTransformer asks for them. All of them are small random numbers: zeros
// would let the device run faster. Confined to one thread.
class CudaDecoder {
 public:
  // Rows of one session: its pending token and four drafts, a round of K = 4.
  // More rows are more sessions, the last of which may have fewer.
  static constexpr int kRowsOfSession = 5;

  static absl::StatusOr<std::unique_ptr<CudaDecoder>> Make(
      std::shared_ptr<Gpu> gpu, const DecoderShape& shape,
      const DecoderLimits& limits);

  // Asks for a copy on the device. Its bytes.
  size_t Copy();

  // Which sessions' rows the parts have that follow.
  absl::Status SetRows(int num_rows);
  // They come in the order of a pass, and a whole pass after them.
  std::vector<DecoderPart> Parts();
  // [rows, vocab_size], where the head leaves its rows.
  const float* logits() const { return logits_; }

 private:
  // A matrix, and where its product goes.
  struct Product {
    const char* name = "";
    int out = 0;
    int in = 0;
    kernels::cuda::Epilogue epilogue = {};
    const void* x = nullptr;
    void* y = nullptr;
    size_t bytes() const { return kernels::cuda::PackedBytes(out, in); }
  };

  CudaDecoder(std::shared_ptr<Gpu> gpu, const DecoderShape& shape,
              const DecoderLimits& limits);

  absl::Status Allocate();
  // Those of a layer: of queries, keys and values together, output, gate and
  // up together, down; and the head's.
  std::array<Product, 5> Products() const;
  size_t PassBytes() const;
  size_t KvBytes(int num_rows) const;  // of a layer's keys and values
  kernels::cuda::KvLayer Kv(size_t i) const;
  int NumNorms() const { return 2 * shape_.num_layers + 1; }
  size_t NumPieces(size_t bytes, size_t bytes_of_all) const;

  DecoderPart PartOf(const Product& product, int num_in_pass);
  DecoderPart PartOf(const char* name, void (CudaDecoder::*launch)(size_t));
  void Multiply(const Product& product, const char* tiles);
  void Normalize(int norm);
  void RotateStore(size_t kv);
  void Attend(size_t kv);
  void RunPass();

  const std::shared_ptr<Gpu> gpu_;
  const DecoderShape shape_;
  const DecoderLimits limits_;
  const StepLimits step_limits_;
  std::vector<DeviceMemory> memory_;
  // A pass's, one after the other, or copies of one kernel's alone.
  char *weights_ = nullptr, *kv_ = nullptr;
  size_t weights_bytes_ = 0, kv_bytes_ = 0;
  float *norms_ = nullptr, *cos_ = nullptr, *sin_ = nullptr, *x_ = nullptr;
  float *qkv_ = nullptr, *scratch_ = nullptr, *logits_ = nullptr;
  char *normed_ = nullptr, *queries_ = nullptr, *attended_ = nullptr;
  char* inner_ = nullptr;
  StepArrays inputs_ = {};
  StepShape step_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_CUDA_DECODER_H_
