// SPDX-License-Identifier: Apache-2.0
#include "core/node/kv_memory.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/kv_block.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

// The shares are of what a device has left. A machine may run several nodes and
// serves other programs too; a GPU is the node's own, but for what its passes
// need.
constexpr double kShareOfCpu = 0.5;
constexpr double kShareOfOthers = 0.9;

absl::Status NotMemory(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text,
      "\" is not a size: auto, a share like 80%, or bytes like 512MiB or 4G"));
}

// The model is asked only where its answer decides: on a GPU it has to try.
int64_t BytesOf(const CausalLm& model, const KvMemory& memory) {
  if (memory.bytes > 0) return memory.bytes;
  const int64_t available = model.AvailableKvBytes();
  double share = memory.share;
  if (share == 0) {
    share = model.info().device == "cpu" ? kShareOfCpu : kShareOfOthers;
  }
  OUTRIDER_LOG(kInfo) << "KV cache: " << BytesForPeople(available)
                      << " are available";
  return static_cast<int64_t>(share * static_cast<double>(available));
}

}  // namespace

absl::StatusOr<KvMemory> ParseKvMemory(const std::string& text) {
  if (text == "auto") return KvMemory{};
  absl::string_view number = text;
  double value = 0;
  if (absl::ConsumeSuffix(&number, "%")) {
    if (!absl::SimpleAtod(number, &value) || !(value > 0 && value <= 100)) {
      return NotMemory(text);
    }
    return KvMemory{.share = value / 100};
  }
  double unit = 1;
  if (!absl::ConsumeSuffix(&number, "iB")) absl::ConsumeSuffix(&number, "B");
  for (const char* suffix : {"K", "M", "G", "T"}) {
    unit *= 1024;
    if (absl::ConsumeSuffix(&number, suffix)) break;
    if (*suffix == 'T') unit = 1;
  }
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(number), &value) ||
      !(value * unit >= 1 && value * unit < 1e18)) {
    return NotMemory(text);
  }
  return KvMemory{.bytes = static_cast<int64_t>(value * unit)};
}

absl::StatusOr<int> SetUpKvBlocks(CausalLm& model, const KvMemory& memory,
                                  int64_t least, int64_t most) {
  const ModelInfo& info = model.info();
  const int64_t block_bytes = std::max<int64_t>(1, info.kv_block_bytes);
  const int64_t bytes = BytesOf(model, memory);
  int64_t num_blocks = bytes / block_bytes;
  const auto blocks_of = [](int64_t tokens) {
    return (tokens + kKvBlockLength - 1) / kKvBlockLength;
  };
  if (num_blocks < blocks_of(least)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--kv-cache-memory: ", BytesForPeople(bytes), " hold ",
        num_blocks * kKvBlockLength, " tokens; a round needs at least ", least,
        ", which take ", BytesForPeople(blocks_of(least) * block_bytes)));
  }
  num_blocks = std::min(
      {num_blocks, blocks_of(most),
       int64_t{std::numeric_limits<int>::max()} / (2 * kKvBlockLength)});
  const int count = static_cast<int>(num_blocks);
  OUTRIDER_RETURN_IF_ERROR(model.AllocateKvBlocks(count));
  OUTRIDER_RETURN_IF_ERROR(model.Prepare());
  OUTRIDER_LOG(kInfo) << "KV cache: " << BytesForPeople(count * block_bytes)
                      << " for " << int64_t{count} * kKvBlockLength
                      << " tokens in " << count << " blocks";
  return count;
}

std::string BytesForPeople(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (value < 1024) return absl::StrFormat("%.4g %s", value, unit);
    value /= 1024;
  }
  return absl::StrFormat("%.4g TiB", value);
}

}  // namespace outrider
