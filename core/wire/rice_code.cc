// SPDX-License-Identifier: Apache-2.0
#include "core/wire/rice_code.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace outrider {
namespace {

uint64_t NumBits(absl::Span<const uint32_t> values, int parameter) {
  uint64_t bits = values.size() * (static_cast<uint64_t>(parameter) + 1);
  for (const uint32_t value : values) bits += value >> parameter;
  return bits;
}

uint32_t LowBits(int num_bits) {
  return static_cast<uint32_t>((uint64_t{1} << num_bits) - 1);
}

}  // namespace

int BestRiceParameter(absl::Span<const uint32_t> values) {
  int best = 0;
  uint64_t least = NumBits(values, best);
  // One more halves each quotient, which saves less every time, and costs a bit
  // for each value: the first that does not pay is followed by none that does.
  while (best < kMaxRiceParameter) {
    const uint64_t bits = NumBits(values, best + 1);
    if (bits >= least) break;
    least = bits;
    ++best;
  }
  return best;
}

void BitWriter::Put(uint32_t value, int num_bits) {
  pending_ |= static_cast<uint64_t>(value) << num_pending_;
  num_pending_ += num_bits;
  while (num_pending_ >= 8) {
    bytes_.push_back(static_cast<char>(pending_ & 0xff));
    pending_ >>= 8;
    num_pending_ -= 8;
  }
}

void BitWriter::PutRice(uint32_t value, int parameter) {
  uint32_t quotient = value >> parameter;
  for (; quotient >= 31; quotient -= 31) Put(LowBits(31), 31);
  const int num_ones = static_cast<int>(quotient);
  Put(LowBits(num_ones), num_ones + 1);
  Put(value & LowBits(parameter), parameter);
}

std::string BitWriter::Finish() {
  if (num_pending_ > 0) Put(0, 8 - num_pending_);
  return std::exchange(bytes_, {});
}

void BitReader::Refill(int num_bits) {
  while (num_bits_ < num_bits && next_ < bytes_.size()) {
    bits_ |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[next_++]))
             << num_bits_;
    num_bits_ += 8;
  }
}

uint32_t BitReader::Fail() {
  has_failed_ = true;
  return 0;
}

uint32_t BitReader::Get(int num_bits) {
  Refill(num_bits);
  if (has_failed_ || num_bits_ < num_bits) return Fail();
  const uint32_t value = static_cast<uint32_t>(bits_) & LowBits(num_bits);
  bits_ >>= num_bits;
  num_bits_ -= num_bits;
  return value;
}

uint32_t BitReader::GetRice(int parameter) {
  uint64_t quotient = 0;
  while (true) {
    Refill(32);
    if (has_failed_ || num_bits_ == 0) return Fail();
    const int num_ones = std::min(std::countr_one(bits_), num_bits_);
    bits_ >>= num_ones;
    num_bits_ -= num_ones;
    quotient += static_cast<uint64_t>(num_ones);
    if (num_bits_ > 0) break;  // a 0 bit is next
  }
  Get(1);
  const uint64_t value = (quotient << parameter) | Get(parameter);
  if (has_failed_ || value > std::numeric_limits<uint32_t>::max()) {
    return Fail();
  }
  return static_cast<uint32_t>(value);
}

bool BitReader::HasEndedWell() const {
  return !has_failed_ && next_ == bytes_.size() && num_bits_ < 8 && bits_ == 0;
}

}  // namespace outrider
