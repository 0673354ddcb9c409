// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/weight_plan.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// Names in one message; the rest is counted.
constexpr size_t kMaxNames = 8;

std::string NameList(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

std::optional<at::ScalarType> FloatDtype(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  return std::nullopt;
}

std::vector<int64_t> StoredShape(const at::Tensor& destination,
                                 bool is_transposed) {
  std::vector<int64_t> shape = destination.sizes().vec();
  if (is_transposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

// Room for any one of the tensors. Each in memory of its own, aligned as torch
// wants it, would lie behind the hole that the last one of its size left, and
// the heap would grow by all of them.
at::Tensor RoomForOne(const TensorMap& tensors) {
  uint64_t most = 0;
  for (const auto& [name, entry] : tensors) {
    most = std::max(most, entry.num_bytes);
  }
  return at::empty({static_cast<int64_t>(most)}, at::kByte);
}

// The bytes as a tensor of their own dtype, or of bytes where torch has none.
// It lies in `room`.
absl::StatusOr<at::Tensor> ReadTensor(const Checkpoint& checkpoint,
                                      const TensorEntry& entry,
                                      const at::Tensor& room) {
  auto* const bytes = static_cast<char*>(room.mutable_data_ptr());
  OUTRIDER_RETURN_IF_ERROR(
      checkpoint.Read(entry, {bytes, static_cast<size_t>(entry.num_bytes)}));
  const std::optional<at::ScalarType> dtype = FloatDtype(entry.dtype);
  return dtype ? at::from_blob(bytes, entry.shape, *dtype)
               : at::from_blob(bytes, {static_cast<int64_t>(entry.num_bytes)},
                               at::kByte);
}

std::string HashBytes(const at::Tensor& tensor) {
  Sha256 sha256;
  sha256.Update({static_cast<const char*>(tensor.const_data_ptr()),
                 static_cast<size_t>(tensor.nbytes())});
  return sha256.HexDigest();
}

}  // namespace

void WeightPlan::Fill(const std::string& name, const at::Tensor& destination) {
  const bool is_new =
      parts_.emplace(name, Part{.destination = destination}).second;
  OUTRIDER_CHECK(is_new) << name;
}

void WeightPlan::FillTransposed(const std::string& name,
                                const at::Tensor& destination) {
  const bool is_new = parts_
                          .emplace(name, Part{.destination = destination,
                                              .is_transposed = true})
                          .second;
  OUTRIDER_CHECK(is_new) << name;
}

void WeightPlan::Allow(const std::string& name) {
  optional_parts_.emplace(name, Part{});
}

void WeightPlan::AllowCopy(const std::string& name,
                           const std::string& original) {
  optional_parts_.emplace(name, Part{.copy_of = original});
}

absl::Status WeightPlan::Check(const Checkpoint& checkpoint) const {
  std::vector<std::string> missing;
  for (const auto& [name, part] : parts_) {
    const auto found = checkpoint.tensors().find(name);
    if (found == checkpoint.tensors().end()) {
      missing.push_back(name);
      continue;
    }
    const TensorEntry& entry = found->second;
    const std::vector<int64_t> shape =
        StoredShape(part.destination, part.is_transposed);
    if (entry.shape != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path(entry), ": tensor ", name, " is ",
                       ShapeText(entry.shape), ", but config.json asks for ",
                       ShapeText(shape)));
    }
    if (!FloatDtype(entry.dtype)) {
      return absl::UnimplementedError(
          absl::StrCat(checkpoint.path(entry), ": tensor ", name, " of dtype ",
                       entry.dtype, " is not supported"));
    }
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the checkpoint lacks ", NameList(missing),
        ": config.json is of another model, or a shard is missing"));
  }
  std::vector<std::string> unexpected;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (!parts_.contains(name) && !optional_parts_.contains(name)) {
      unexpected.push_back(name);
    }
  }
  if (!unexpected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint has tensors that config.json does not ask "
                     "for: ",
                     NameList(unexpected)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WeightPlan::Run(
    const Checkpoint& checkpoint) const {
  OUTRIDER_RETURN_IF_ERROR(Check(checkpoint));

  // They are read in the order of the files, so that disks read forward.
  using Item = std::pair<const std::string, TensorEntry>;
  std::vector<const Item*> order;
  for (const Item& item : checkpoint.tensors()) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.file_index, a->second.offset) <
           std::pair(b->second.file_index, b->second.offset);
  });

  const at::Tensor room = RoomForOne(checkpoint.tensors());
  std::map<std::string, std::string> digests;
  for (const Item* item : order) {
    const auto& [name, entry] = *item;
    OUTRIDER_ASSIGN_OR_RETURN(const at::Tensor tensor,
                              ReadTensor(checkpoint, entry, room));
    digests[name] = HashBytes(tensor);
    const auto part = parts_.find(name);
    if (part == parts_.end()) continue;
    part->second.destination.copy_(part->second.is_transposed ? tensor.t()
                                                              : tensor);
  }
  Sha256 sha256;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    const auto optional = optional_parts_.find(name);
    if (optional != optional_parts_.end() &&
        !optional->second.copy_of.empty() &&
        digests[name] != digests[optional->second.copy_of]) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path(entry), ": tensor ", name,
                       " differs from ", optional->second.copy_of,
                       ", though config.json says tie_word_embeddings"));
    }
    sha256.Update(absl::StrCat(name, " ", entry.dtype, " ",
                               ShapeText(entry.shape), " ", digests[name],
                               "\n"));
  }
  return sha256.HexDigest();
}

}  // namespace outrider
