// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_FUZZ_SCRATCH_FOLDER_H_
#define OUTRIDER_TESTS_FUZZ_SCRATCH_FOLDER_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outrider::testing {

// A folder of this process's, in memory where there is such a place: for what
// is read from files alone.
class ScratchFolder {
 public:
  explicit ScratchFolder(absl::string_view fuzzer) {
    const std::filesystem::path memory = "/dev/shm";
    path_ = (std::filesystem::is_directory(memory)
                 ? memory
                 : std::filesystem::temp_directory_path()) /
            absl::StrCat("outrider_", fuzzer, "_fuzzer_", getpid());
    std::filesystem::create_directory(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  void Write(const std::string& name, absl::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  void Remove(const std::string& name) const {
    std::filesystem::remove(path_ / name);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_FUZZ_SCRATCH_FOLDER_H_
