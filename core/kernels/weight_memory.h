// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_WEIGHT_MEMORY_H_
#define OUTRIDER_CORE_KERNELS_WEIGHT_MEMORY_H_

#include <cstddef>
#include <memory>

namespace outrider::kernels {

// Where the weights of a model lie side by side, in huge pages (2 MiB, mostly)
// where the system gives them to those who ask (transparent_hugepage: madvise
// or always). A pass reads every weight once: in pages of 4 KiB it needs a
// translation each 4 KiB, which no processor keeps for so many, and which a
// virtual machine looks up in two tables. Thread-compatible. What it gave out
// may outlive it; a region of it goes back to the system with the last weight
// that lies there.
class WeightMemory {
 public:
  // Zeros that begin on a cache line; taken from the system when they are first
  // written to. Throws std::bad_alloc.
  std::shared_ptr<void> Allocate(size_t num_bytes);

 private:
  std::shared_ptr<void> region_;
  size_t region_size_ = 0;
  size_t num_used_ = 0;
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_WEIGHT_MEMORY_H_
