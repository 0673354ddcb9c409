// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace outrider::kernels {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Mostly addresses: pages become memory when they are first written to.
constexpr size_t kLeastRegion = size_t{64} << 20;

size_t RoundUp(size_t number, size_t unit) {
  return (number + unit - 1) / unit * unit;
}

// Begins and ends with a huge page.
std::shared_ptr<void> MapRegion(size_t size) {
  const size_t mapped = size + kHugePage;
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(memory);
  void* const region =
      static_cast<char*>(memory) + (RoundUp(address, kHugePage) - address);
  // Only a wish: without such pages all works as well, more slowly.
  madvise(region, size, MADV_HUGEPAGE);
  return {region, [memory, mapped](void*) { munmap(memory, mapped); }};
}

}  // namespace

std::shared_ptr<void> WeightMemory::Allocate(size_t num_bytes) {
  const size_t size = RoundUp(num_bytes, kCacheLine);
  if (size > region_size_ - num_used_) {
    const size_t region_size = std::max(kLeastRegion, RoundUp(size, kHugePage));
    region_ = MapRegion(region_size);
    region_size_ = region_size;
    num_used_ = 0;
  }
  void* const first = static_cast<char*>(region_.get()) + num_used_;
  num_used_ += size;
  return {region_, first};
}

}  // namespace outrider::kernels
