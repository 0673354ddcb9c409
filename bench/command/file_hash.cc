// SPDX-License-Identifier: Apache-2.0
#include "bench/command/file_hash.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"

namespace outrider::bench {
namespace {

namespace fs = std::filesystem;

std::string FirstDigits(Sha256& hash) { return hash.HexDigest().substr(0, 12); }

std::string HashUnlessCancelled(const std::string& path,
                                const Cancellation& cancellation) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  Sha256 hash;
  while (file && !cancellation.cancelled()) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash.Update({block.data(), static_cast<size_t>(file.gcount())});
  }
  return FirstDigits(hash);
}

}  // namespace

std::string HashOfFile(const std::string& path) {
  return HashUnlessCancelled(path, Cancellation());
}

std::string HashOfModel(const std::string& folder,
                        const Cancellation& cancellation) {
  std::set<fs::path> paths;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    const fs::path extension = it->path().extension();
    if (extension == ".json" || extension == ".safetensors") {
      paths.insert(it->path());
    }
  }
  Sha256 hash;
  for (const fs::path& path : paths) {
    hash.Update(absl::StrCat(path.filename().string(), "\n",
                             HashUnlessCancelled(path.string(), cancellation),
                             "\n"));
  }
  return FirstDigits(hash);
}

}  // namespace outrider::bench
