// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_GOLDEN_FILES_H_
#define OUTRIDER_CORE_TESTING_GOLDEN_FILES_H_

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider::testing {

// A path of the repository.
inline std::string SourcePath(const std::string& path) {
  const char* root = std::getenv("OUTRIDER_SOURCE_DIR");
  OUTRIDER_CHECK(root != nullptr) << "ctest sets OUTRIDER_SOURCE_DIR";
  return absl::StrCat(root, "/", path);
}

// Where tools/make_tokenizer_golden.py has written a kind's files.
inline std::string GoldenDirectory(const std::string& kind) {
  return SourcePath(absl::StrCat("tests/golden/testdata/tokenizer/", kind));
}

inline std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  OUTRIDER_CHECK(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The kinds that have a tokenizer.json of their own beside the cases.
inline std::vector<std::string> GoldenKinds() {
  return {"gpt2",   "gpt2-added",    "llama3",           "qwen2",
          "llama2", "mistral-first", "metaspace-always", "metaspace-never",
          "smollm2"};
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_GOLDEN_FILES_H_
