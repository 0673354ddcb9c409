// SPDX-License-Identifier: Apache-2.0
#include "core/wire/rice_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little);

uint64_t NumBits(absl::Span<const uint32_t> values, int parameter) {
  uint64_t bits = values.size() * (static_cast<uint64_t>(parameter) + 1);
  for (const uint32_t value : values) bits += value >> parameter;
  return bits;
}

// Fewer than 64.
uint64_t LowBits64(int num_bits) { return (uint64_t{1} << num_bits) - 1; }

uint32_t LowBits(int num_bits) {
  return static_cast<uint32_t>(LowBits64(num_bits));
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

void BitWriter::PutWord() {
  char word[kWordBits / 8];
  std::memcpy(word, &pending_, sizeof(word));
  bytes_.append(word, sizeof(word));
  pending_ >>= kWordBits;
  num_pending_ -= kWordBits;
}

void BitWriter::PutRice(uint32_t value, int parameter) {
  uint32_t quotient = value >> parameter;
  const uint32_t low = value & LowBits(parameter);
  if (quotient + static_cast<uint64_t>(parameter) < kWordBits) {
    const int num_ones = static_cast<int>(quotient);
    const uint64_t code = LowBits(num_ones) | uint64_t{low} << (num_ones + 1);
    Put(static_cast<uint32_t>(code), num_ones + 1 + parameter);
    return;
  }
  for (; quotient >= 31; quotient -= 31) Put(LowBits(31), 31);
  const int num_ones = static_cast<int>(quotient);
  Put(LowBits(num_ones), num_ones + 1);
  Put(low, parameter);
}

std::string BitWriter::Finish() {
  for (; num_pending_ > 0; num_pending_ -= 8) {
    bytes_.push_back(static_cast<char>(pending_ & 0xff));
    pending_ >>= 8;
  }
  num_pending_ = 0;
  return std::exchange(bytes_, {});
}

void BitReader::ReadOn() {
  // This takes as many whole bytes as there is room for.
  const int num_bytes = (63 - num_bits_) / 8;
  uint64_t word = 0;
  if (bytes_.size() - next_ >= sizeof(word)) {
    std::memcpy(&word, bytes_.data() + next_, sizeof(word));
    bits_ |= (word & LowBits64(8 * num_bytes)) << num_bits_;
    next_ += static_cast<size_t>(num_bytes);
    num_bits_ += 8 * num_bytes;
    return;
  }
  for (int i = 0; i < num_bytes && next_ < bytes_.size(); ++i) {
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
