// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/cuda_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/kv_block.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

using kernels::cuda::Epilogue;

constexpr size_t kElementBytes = 2;
constexpr size_t kBlockItems = size_t{32} << 20;
constexpr size_t kMostCopyBytes = size_t{1} << 30;
// Launching a graph takes some microseconds, which are to be no part of a
// kernel's time.
constexpr int kFewestLaunches = 128;

int NumSessions(int num_rows) {
  return (num_rows + CudaDecoder::kRowsOfSession - 1) /
         CudaDecoder::kRowsOfSession;
}

// Bits of bfloat16 numbers whose signs and mantissas are random, and their
// exponents those of 2^-7 to 2^-4. Two of them are a small float32 as well.
std::vector<uint16_t> RandomBlock() {
  std::minstd_rand random(3);
  std::vector<uint16_t> block(kBlockItems);
  for (uint16_t& bits : block) {
    const auto word = static_cast<uint32_t>(random() >> 8);
    const uint32_t exponent = 120 + (word >> 8) % 4;
    bits = static_cast<uint16_t>((word & 0x807F) | exponent << 7);
  }
  return block;
}

// Uploads them, over and over.
void Fill(Gpu& gpu, const std::vector<uint16_t>& block, char* to,
          size_t bytes) {
  const size_t block_bytes = block.size() * kElementBytes;
  gpu.Upload(to, block.data(), std::min(bytes, block_bytes));
  for (size_t done = block_bytes; done < bytes; done += block_bytes) {
    gpu.Copy(to + done, to, std::min(bytes - done, block_bytes));
  }
}

absl::Status Finish(Gpu& gpu) {
  const std::string failure = gpu.Finish();
  return failure.empty() ? absl::OkStatus() : absl::UnavailableError(failure);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDecoder>> CudaDecoder::Make(
    std::shared_ptr<Gpu> gpu, const DecoderShape& shape,
    const DecoderLimits& limits) {
  std::unique_ptr<CudaDecoder> decoder(
      new CudaDecoder(std::move(gpu), shape, limits));
  OUTRIDER_RETURN_IF_ERROR(decoder->Allocate());
  return decoder;
}

CudaDecoder::CudaDecoder(std::shared_ptr<Gpu> gpu, const DecoderShape& shape,
                         const DecoderLimits& limits)
    : gpu_(std::move(gpu)),
      shape_(shape),
      limits_(limits),
      step_limits_(
          {.rows = limits.rows,
           .table_entries =
               NumSessions(limits.rows) * NumKvBlocks(limits.num_keys),
           .group = shape.heads.num_heads / shape.heads.num_kv_heads}) {}

absl::Status CudaDecoder::Allocate() {
  const std::vector<uint16_t> block = RandomBlock();
  const auto allocate = [&](auto*& piece, size_t bytes) -> absl::Status {
    OUTRIDER_ASSIGN_OR_RETURN(
        DeviceMemory memory,
        DeviceMemory::Allocate(gpu_, bytes, "a decoder to measure"));
    piece = memory.as<std::remove_reference_t<decltype(*piece)>>();
    Fill(*gpu_, block, memory.as<char>(), bytes);
    memory_.push_back(std::move(memory));
    return absl::OkStatus();
  };
  // A whole pass, and for each kernel enough that differs.
  const auto [qkv, output, up, down, head] = Products();
  weights_bytes_ = std::max(
      PassBytes(), limits_.cold_bytes + std::max(up.bytes(), head.bytes()));
  const size_t kv_bytes = KvBytes(limits_.rows);
  kv_bytes_ =
      std::max(shape_.num_layers * kv_bytes, limits_.cold_bytes + kv_bytes);

  const auto floats = [&](float*& piece, size_t count) {
    return allocate(piece, count * sizeof(float));
  };
  const auto elements = [&](char*& piece, size_t count) {
    return allocate(piece, count * kElementBytes);
  };
  const auto rows = static_cast<size_t>(limits_.rows);
  const size_t num_angles = size_t{1} * limits_.num_keys *
                            static_cast<size_t>(shape_.heads.head_dim) / 2;
  const size_t num_parts = kernels::cuda::AttentionScratchFloats(
      shape_.heads,
      step_limits_.tiles() * kernels::cuda::NumSplits(limits_.num_keys));
  char* inputs = nullptr;
  absl::Status status = allocate(weights_, weights_bytes_);
  status.Update(allocate(kv_, kv_bytes_));
  status.Update(allocate(inputs, StepArrays::Bytes(step_limits_)));
  status.Update(floats(norms_, size_t{1} * NumNorms() * shape_.hidden));
  status.Update(floats(cos_, num_angles));
  status.Update(floats(sin_, num_angles));
  status.Update(floats(x_, rows * shape_.hidden));
  status.Update(floats(qkv_, rows * shape_.qkv_size()));
  status.Update(floats(logits_, rows * shape_.vocab_size));
  status.Update(floats(scratch_, num_parts));
  status.Update(elements(normed_, rows * shape_.hidden));
  status.Update(elements(queries_, rows * shape_.q_size()));
  status.Update(elements(attended_, rows * shape_.q_size()));
  status.Update(elements(inner_, rows * shape_.inner));
  status.Update(Finish(*gpu_));  // before `block` goes
  if (status.ok()) inputs_ = StepArrays(step_limits_, inputs);
  return status;
}

size_t CudaDecoder::Copy() {
  const size_t bytes = std::min(weights_bytes_ / 2, kMostCopyBytes);
  gpu_->Copy(weights_ + weights_bytes_ / 2, weights_, bytes);
  return bytes;
}

absl::Status CudaDecoder::SetRows(int num_rows) {
  const int num_blocks = NumKvBlocks(limits_.num_keys);
  std::vector<int> memory(StepArrays::Bytes(step_limits_) / sizeof(int));
  const std::vector<TokenId> tokens(kRowsOfSession);
  std::vector<KvBlockId> blocks(num_blocks);
  StepInputs step(step_limits_, memory.data());
  for (int session = 0; session < NumSessions(num_rows); ++session) {
    std::iota(blocks.begin(), blocks.end(), session * num_blocks);
    const int count =
        std::min(kRowsOfSession, num_rows - session * kRowsOfSession);
    step.Add({.blocks = blocks,
              .cached_length = limits_.num_keys - count,
              .tokens = absl::MakeConstSpan(tokens).first(count),
              .num_rows = count},
             /*first=*/0);
  }
  step_ = step.shape();
  gpu_->Upload(inputs_.tokens, step.memory(), step.bytes());
  return Finish(*gpu_);  // before `memory` goes
}

std::array<CudaDecoder::Product, 5> CudaDecoder::Products() const {
  const int hidden = shape_.hidden;
  return {
      {{"qkv", shape_.qkv_size(), hidden, Epilogue::kStore, normed_, qkv_},
       {"output", hidden, shape_.q_size(), Epilogue::kAdd, attended_, x_},
       {"up", 2 * shape_.inner, hidden, Epilogue::kSiluMul, normed_, inner_},
       {"down", hidden, shape_.inner, Epilogue::kAdd, inner_, x_},
       {"head", shape_.vocab_size, hidden, Epilogue::kStore, normed_,
        logits_}}};
}

size_t CudaDecoder::PassBytes() const {
  const auto [qkv, output, up, down, head] = Products();
  return head.bytes() + shape_.num_layers * (qkv.bytes() + output.bytes() +
                                             up.bytes() + down.bytes());
}

size_t CudaDecoder::KvBytes(int num_rows) const {
  const int num_blocks = NumSessions(num_rows) * NumKvBlocks(limits_.num_keys);
  return 2 * kElementBytes * num_blocks * kKvBlockLength * shape_.kv_size();
}

kernels::cuda::KvLayer CudaDecoder::Kv(size_t i) const {
  const size_t bytes = KvBytes(step_.num_rows);
  return {.keys = kv_ + i * bytes, .values = kv_ + i * bytes + bytes / 2};
}

// How many pieces launches take in turn, so that one comes back after
// `cold_bytes`.
size_t CudaDecoder::NumPieces(size_t bytes, size_t bytes_of_all) const {
  return std::min((limits_.cold_bytes + bytes - 1) / bytes,
                  bytes_of_all / bytes);
}

DecoderPart CudaDecoder::PartOf(const Product& product, int num_in_pass) {
  const size_t num_pieces = NumPieces(product.bytes(), weights_bytes_);
  return {
      .name = product.name,
      .num_launches = std::max(kFewestLaunches, static_cast<int>(num_pieces)),
      .launch =
          [this, product, num_pieces](int i) {
            Multiply(product, weights_ + i % num_pieces * product.bytes());
          },
      .num_in_pass = num_in_pass,
      .weight_bytes = product.bytes()};
}

DecoderPart CudaDecoder::PartOf(const char* name,
                                void (CudaDecoder::*launch)(size_t)) {
  const size_t num_pieces = NumPieces(KvBytes(step_.num_rows), kv_bytes_);
  return {
      .name = name,
      .num_launches = std::max(kFewestLaunches, static_cast<int>(num_pieces)),
      .launch = [this, launch,
                 num_pieces](int i) { (this->*launch)(i % num_pieces); },
      .num_in_pass = shape_.num_layers};
}

std::vector<DecoderPart> CudaDecoder::Parts() {
  const auto [qkv, output, up, down, head] = Products();
  const int num_layers = shape_.num_layers;
  // A norm's rows come from the cache in a pass, too; its weight here alone.
  return {{.name = "norm",
           .num_launches = kFewestLaunches,
           .launch = [this](int i) { Normalize(i % NumNorms()); },
           .num_in_pass = NumNorms()},
          PartOf(qkv, num_layers),
          PartOf("rotate", &CudaDecoder::RotateStore),
          PartOf("attention", &CudaDecoder::Attend),
          PartOf(output, num_layers),
          PartOf(up, num_layers),
          PartOf(down, num_layers),
          PartOf(head, 1),
          {.name = "pass",
           .launch = [this](int) { RunPass(); },
           .is_pass = true,
           .weight_bytes = PassBytes()}};
}

void CudaDecoder::Multiply(const Product& product, const char* tiles) {
  gpu_->Run(kernels::cuda::LinearArgs{
      .weight = {.tiles = tiles, .out = product.out, .in = product.in},
      .x = product.x,
      .num_rows = step_.num_rows,
      .epilogue = product.epilogue,
      .y = product.y});
}

void CudaDecoder::Normalize(int norm) {
  const bool is_final = norm == NumNorms() - 1;
  gpu_->RunRmsNorm({.x = x_,
                    .rows = is_final ? inputs_.logit_rows : nullptr,
                    .weight = norms_ + size_t{1} * norm * shape_.hidden,
                    .num_rows = step_.num_rows,
                    .size = shape_.hidden,
                    .epsilon = 1e-5f,
                    .y = normed_});
}

void CudaDecoder::RotateStore(size_t kv) {
  gpu_->Run(kernels::cuda::RotateStoreArgs{.heads = shape_.heads,
                                           .qkv = qkv_,
                                           .num_rows = step_.num_rows,
                                           .positions = inputs_.positions,
                                           .blocks = inputs_.blocks,
                                           .cos = cos_,
                                           .sin = sin_,
                                           .queries = queries_,
                                           .kv = Kv(kv)});
}

void CudaDecoder::Attend(size_t kv) {
  gpu_->Run(kernels::cuda::AttentionArgs{
      .heads = shape_.heads,
      .queries = queries_,
      .kv = Kv(kv),
      .tables = inputs_.tables,
      .tiles = inputs_.tiles,
      .num_tiles = step_.num_tiles,
      .num_pairs = step_.num_pairs,
      .scale = 1.0f / std::sqrt(static_cast<float>(shape_.heads.head_dim)),
      .scratch = scratch_,
      .out = attended_});
}

void CudaDecoder::RunPass() {
  const auto [qkv, output, up, down, head] = Products();
  const char* weights = weights_;
  const auto multiply = [&](const Product& product) {
    Multiply(product, weights);
    weights += product.bytes();
  };
  for (int i = 0; i < shape_.num_layers; ++i) {
    Normalize(2 * i);
    multiply(qkv);
    RotateStore(i);
    Attend(i);
    multiply(output);
    Normalize(2 * i + 1);
    multiply(up);
    multiply(down);
  }
  Normalize(NumNorms() - 1);
  multiply(head);
}

}  // namespace outrider
