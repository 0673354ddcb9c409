// SPDX-License-Identifier: Apache-2.0
// A checkpoint of anybody's: the file, or an index beside one good shard.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/model/safetensors.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/scratch_folder.h"

namespace outrider::testing {
namespace {

// One tensor "a" of two floats.
std::string GoodShard() {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + "01234567";
}

// Each tensor can be read, and no two share a byte.
void CheckUsable(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::pair<int, uint64_t>, uint64_t>> places;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    std::string bytes(entry.num_bytes, '\0');
    OUTRIDER_CHECK(checkpoint.Read(entry, absl::MakeSpan(bytes)).ok()) << name;
    OUTRIDER_CHECK(!ShapeText(entry.shape).empty());
    places.push_back({{entry.file_index, entry.offset}, entry.num_bytes});
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) {
    const auto& [before, num_bytes] = places[i - 1];
    const auto& [place, unused] = places[i];
    OUTRIDER_CHECK(before.first != place.first ||
                   before.second + num_bytes <= place.second);
  }
}

void Try(absl::string_view input) {
  static const ScratchFolder folder("safetensors");
  const bool is_index = absl::StartsWith(input, "{");
  const std::string name =
      is_index ? "model.safetensors.index.json" : "model.safetensors";
  folder.Write(name, input);
  if (is_index) folder.Write("shard.safetensors", GoodShard());
  const auto checkpoint = Checkpoint::Open(folder.path());
  if (checkpoint.ok()) {
    CheckUsable(*checkpoint);
  } else {
    CheckRefusal(checkpoint.status());
  }
  folder.Remove(name);
}

}  // namespace
}  // namespace outrider::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::testing::Try(outrider::testing::AsText(data, size));
  return 0;
}
