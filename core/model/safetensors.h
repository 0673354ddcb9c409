// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_SAFETENSORS_H_
#define OUTRIDER_CORE_MODEL_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/read_only_file.h"

namespace outrider {

// Where one tensor lies: little-endian, row-major, at [offset, offset +
// num_bytes) of its file.
struct TensorEntry {
  std::string dtype = {};  // as the file writes it: "F32", "BF16", "F16", ...
  std::vector<int64_t> shape = {};
  int file_index = 0;
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
};

using TensorMap = std::map<std::string, TensorEntry>;

// The header of a safetensors file whose whole size is `file_size`: `header`
// is what follows the eight bytes that give its length. INVALID_ARGUMENT,
// starting with `what`, unless every rule of the format holds: the tensors
// fill the data exactly, none is empty, none shares a byte with another.
absl::StatusOr<TensorMap> ParseSafetensorsHeader(absl::string_view header,
                                                 uint64_t file_size,
                                                 const std::string& what);

// The tensors of a model directory: model.safetensors, or the shards that
// model.safetensors.index.json names. Immutable and thread-safe once open.
class Checkpoint {
 public:
  // NOT_FOUND where there is no checkpoint, UNIMPLEMENTED where there is one of
  // another format (pickle, GGUF), INVALID_ARGUMENT where it is damaged.
  static absl::StatusOr<Checkpoint> Open(const std::string& directory);

  const TensorMap& tensors() const { return tensors_; }
  const std::string& path(const TensorEntry& entry) const {
    return files_[entry.file_index].path();
  }

  // Fills `out` with the tensor's bytes; their sizes must be equal.
  absl::Status Read(const TensorEntry& entry, absl::Span<char> out) const;

 private:
  absl::Status AddFile(const std::string& path);

  std::vector<ReadOnlyFile> files_;
  TensorMap tensors_;
};

// "[2, 3]", for messages.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_SAFETENSORS_H_
