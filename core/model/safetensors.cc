// SPDX-License-Identifier: Apache-2.0
#include "core/model/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/json/strict_json.h"

namespace outrider {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
constexpr size_t kMaxRank = 8;
constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr StrictJsonLimits kHeaderLimits = {.max_depth = 4,
                                            .max_bytes = kMaxHeaderBytes};

// Bytes of one element, 0 for an unknown dtype. The four-bit and six-bit
// floats of newer files are left out: no model here can use them.
uint64_t ElementBytes(const std::string& dtype) {
  static const std::map<std::string, uint64_t> kBytes = {
      {"F64", 8},     {"I64", 8}, {"U64", 8},     {"F32", 4},
      {"I32", 4},     {"U32", 4}, {"F16", 2},     {"BF16", 2},
      {"I16", 2},     {"U16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"F8_E8M0", 1}, {"I8", 1},  {"U8", 1},      {"BOOL", 1}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

// One "name": {"dtype": …, "shape": […], "data_offsets": [begin, end]}.
// `offset` is still relative to the data.
absl::StatusOr<TensorEntry> ParseEntry(const json& value,
                                       const std::string& what) {
  const auto damaged = [&what](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", problem));
  };
  if (!value.is_object()) return damaged("not an object");
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return damaged(absl::StrCat("unknown key \"", key, "\""));
    }
  }
  if (value.size() != 3) return damaged("needs dtype, shape and data_offsets");
  if (!value["dtype"].is_string()) return damaged("dtype is not a string");

  TensorEntry entry;
  entry.dtype = value["dtype"].get<std::string>();
  uint64_t num_bytes = ElementBytes(entry.dtype);
  if (num_bytes == 0) {
    return damaged(absl::StrCat("unknown dtype \"", entry.dtype, "\""));
  }
  const json& shape = value["shape"];
  if (!shape.is_array()) return damaged("shape is not an array");
  if (shape.size() > kMaxRank) {
    return damaged(
        absl::StrCat("rank ", shape.size(), " is more than ", kMaxRank));
  }
  for (const json& size : shape) {
    if (!size.is_number_unsigned()) return damaged("bad size in shape");
    const uint64_t n = size.get<uint64_t>();
    if (n == 0) return damaged("an empty tensor");
    // Also keeps every size within int64.
    if (n > (uint64_t{1} << 62) ||
        __builtin_mul_overflow(num_bytes, n, &num_bytes)) {
      return damaged("shape overflows");
    }
    entry.shape.push_back(static_cast<int64_t>(n));
  }
  const json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return damaged("data_offsets are not two non-negative integers");
  }
  const uint64_t begin = offsets[0].get<uint64_t>();
  const uint64_t end = offsets[1].get<uint64_t>();
  if (begin > end || end - begin != num_bytes) {
    return damaged(absl::StrCat(
        "data_offsets [", begin, ", ", end, ") do not hold ", entry.dtype,
        ShapeText(entry.shape), ", ", num_bytes, " bytes"));
  }
  entry.offset = begin;
  entry.num_bytes = num_bytes;
  return entry;
}

absl::Status CheckMetadata(const json& metadata, const std::string& what) {
  if (!metadata.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": __metadata__ is not an object"));
  }
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": __metadata__ \"", key, "\" is not a string"));
    }
  }
  return absl::OkStatus();
}

// The tensors must tile [0, data_bytes).
absl::Status CheckTiling(const TensorMap& tensors, uint64_t data_bytes,
                         const std::string& what) {
  std::vector<std::pair<uint64_t, const std::string*>> order;
  for (const auto& [name, entry] : tensors) {
    order.emplace_back(entry.offset, &name);
  }
  std::sort(order.begin(), order.end());
  uint64_t filled = 0;
  for (const auto& [offset, name] : order) {
    if (offset != filled) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": tensor \"", *name, "\" begins at ", offset, ", ",
          offset < filled ? "inside another one" : "after a hole",
          " (expected ", filled, ")"));
    }
    // No overflow: end offsets were 64-bit numbers in the file.
    filled += tensors.at(*name).num_bytes;
  }
  if (filled != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": the tensors take ", filled, " bytes, but the file has ",
        data_bytes,
        filled > data_bytes ? "; it was cut off, copy it again" : ""));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorMap> ReadHeader(const ReadOnlyFile& file) {
  if (file.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ": ", file.size(), " bytes are too few for safetensors"));
  }
  unsigned char raw[kLengthBytes];
  OUTRIDER_RETURN_IF_ERROR(
      file.ReadAt(0, {reinterpret_cast<char*>(raw), kLengthBytes}));
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) length = length << 8 | raw[i];
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": header length ", length,
                     " is beyond the file or the limit of ", kMaxHeaderBytes,
                     "; not a safetensors file, or cut off"));
  }
  std::string header(length, '\0');
  OUTRIDER_RETURN_IF_ERROR(file.ReadAt(kLengthBytes, absl::MakeSpan(header)));
  return ParseSafetensorsHeader(header, file.size(), file.path());
}

bool IsOtherFormat(const std::string& name) {
  for (const char* suffix : {".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5",
                             ".msgpack", ".pickle", ".pkl"}) {
    if (absl::EndsWith(name, suffix)) return true;
  }
  return false;
}

// Why a directory without safetensors cannot be used.
absl::Status NoCheckpoint(const std::string& directory) {
  const auto other_format = [](const std::string& path) {
    return absl::UnimplementedError(
        absl::StrCat(path,
                     ": this checkpoint format is not supported; use a "
                     "directory with safetensors"));
  };
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error && IsOtherFormat(directory)) return other_format(directory);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": not a model directory"));
  }
  for (const auto& file : files) {
    if (IsOtherFormat(file.path().filename().string())) {
      return other_format(file.path().string());
    }
  }
  return absl::NotFoundError(
      absl::StrCat(directory, ": neither ", kSingleFile, " nor ", kIndexFile));
}

// Shard name by tensor name.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(
    const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const json index,
                            ReadStrictJson(path, kHeaderLimits));
  const auto damaged = [&path](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", problem));
  };
  const auto found = index.find("weight_map");
  if (found == index.end() || !found->is_object() || found->empty()) {
    return damaged("no weight_map");
  }
  std::map<std::string, std::string> shards;
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) return damaged("weight_map holds a non-string");
    const std::string shard = value.get<std::string>();
    // A name is joined to the directory: it must not lead out of it.
    if (!absl::EndsWith(shard, ".safetensors") ||
        absl::StrContains(shard, '/') || absl::StrContains(shard, '\0') ||
        absl::StartsWith(shard, ".")) {
      return damaged(absl::StrCat("shard \"", shard,
                                  "\" is not the name of a safetensors file"));
    }
    shards.emplace(name, shard);
  }
  return shards;
}

}  // namespace

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<TensorMap> ParseSafetensorsHeader(absl::string_view header,
                                                 uint64_t file_size,
                                                 const std::string& what) {
  OUTRIDER_CHECK(header.size() + kLengthBytes <= file_size);
  if (!absl::StartsWith(header, "{")) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the header does not start with {"));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const json root,
                            ParseStrictJson(header, what, kHeaderLimits));
  TensorMap tensors;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      OUTRIDER_RETURN_IF_ERROR(CheckMetadata(value, what));
      continue;
    }
    OUTRIDER_ASSIGN_OR_RETURN(
        TensorEntry entry,
        ParseEntry(value, absl::StrCat(what, ": tensor \"", name, "\"")));
    tensors.emplace(name, std::move(entry));
  }
  const uint64_t data_begin = kLengthBytes + header.size();
  OUTRIDER_RETURN_IF_ERROR(CheckTiling(tensors, file_size - data_begin, what));
  for (auto& [name, entry] : tensors) entry.offset += data_begin;
  return tensors;
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory) {
  Checkpoint checkpoint;
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(directory, "/", kSingleFile),
                              error)) {
    OUTRIDER_RETURN_IF_ERROR(
        checkpoint.AddFile(absl::StrCat(directory, "/", kSingleFile)));
    return checkpoint;
  }
  const std::string index = absl::StrCat(directory, "/", kIndexFile);
  if (!std::filesystem::exists(index, error)) return NoCheckpoint(directory);

  OUTRIDER_ASSIGN_OR_RETURN(const auto shard_of, ReadIndex(index));
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  for (const std::string& shard : shards) {
    OUTRIDER_RETURN_IF_ERROR(
        checkpoint.AddFile(absl::StrCat(directory, "/", shard)));
  }
  for (const auto& [name, shard] : shard_of) {
    const auto found = checkpoint.tensors_.find(name);
    if (found == checkpoint.tensors_.end() ||
        checkpoint.path(found->second) != absl::StrCat(directory, "/", shard)) {
      return absl::InvalidArgumentError(
          absl::StrCat(index, ": tensor \"", name, "\" is not in ", shard,
                       "; the shards are of different downloads"));
    }
  }
  for (const auto& [name, entry] : checkpoint.tensors_) {
    if (!shard_of.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path(entry), ": tensor \"", name,
                       "\" is not in ", kIndexFile));
    }
  }
  return checkpoint;
}

absl::Status Checkpoint::AddFile(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(ReadOnlyFile file, ReadOnlyFile::Open(path));
  OUTRIDER_ASSIGN_OR_RETURN(TensorMap added, ReadHeader(file));
  for (auto& [name, entry] : added) {
    entry.file_index = static_cast<int>(files_.size());
    if (const auto [at, is_new] = tensors_.emplace(name, std::move(entry));
        !is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor \"", name, "\" is also in ",
                       files_[at->second.file_index].path()));
    }
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status Checkpoint::Read(const TensorEntry& entry,
                              absl::Span<char> out) const {
  OUTRIDER_CHECK(out.size() == entry.num_bytes) << out.size();
  return files_[entry.file_index].ReadAt(entry.offset, out);
}

}  // namespace outrider
