// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_RICE_CODE_H_
#define OUTRIDER_CORE_WIRE_RICE_CODE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace outrider {

// Rice's code of numbers that are mostly small, with a parameter r: n >> r as
// so many 1 bits and a 0 bit, then the low r bits of n. Bits fill each byte
// from its lowest on; the last byte ends with zeros.

inline constexpr int kMaxRiceParameter = 31;

// The parameter with which the values together take the fewest bits.
int BestRiceParameter(absl::Span<const uint32_t> values);

class BitWriter {
 public:
  // Takes at most 32 bits, which hold the value; the lowest goes first.
  void Put(uint32_t value, int num_bits) {
    pending_ |= uint64_t{value} << num_pending_;
    num_pending_ += num_bits;
    if (num_pending_ >= kWordBits) PutWord();
  }
  void PutRice(uint32_t value, int parameter);
  // All that was put, in whole bytes. The writer is empty afterwards.
  std::string Finish();

 private:
  static constexpr int kWordBits = 32;
  void PutWord();

  std::string bytes_;
  uint64_t pending_ = 0;  // fewer than a word's bits between two calls
  int num_pending_ = 0;
};

// Reads what anybody may have written: where the bytes do not have what is
// asked for, it fails, and gives zeros from there on.
class BitReader {
 public:
  explicit BitReader(absl::string_view bytes) : bytes_(bytes) {}

  // There may be at most 32 of them.
  uint32_t Get(int num_bits);
  // Fails also where the number takes more than 32 bits.
  uint32_t GetRice(int parameter);

  // Whether nothing failed and all has been read but the zeros of a last byte.
  bool HasEndedWell() const;

 private:
  // Makes at least so many bits available, at most 32, if there are.
  void Refill(int num_bits) {
    if (num_bits_ < num_bits) ReadOn();
  }
  void ReadOn();
  uint32_t Fail();

  absl::string_view bytes_;
  size_t next_ = 0;  // of bytes_
  uint64_t bits_ = 0;
  int num_bits_ = 0;
  bool has_failed_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_RICE_CODE_H_
