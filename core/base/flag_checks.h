// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
#define OUTRIDER_CORE_BASE_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/number_range.h"

namespace outrider {

// What all programs hold their flags against. CLI::Range would let NaN pass,
// and words its errors as a library does.
CLI::Validator NumberIn(const NumberRange& range);
CLI::Validator NumberIn(double low, double high);  // both belong to it
// Takes `word` in place of a number too, unless that is empty.
CLI::Validator WholeNumberIn(uint64_t low, uint64_t high,
                             const std::string& word = "");

// Takes these words alone: an error has them, and the one that was given.
CLI::Validator OneOf(const std::vector<std::string>& words);

// An option that takes the name of a value, and sets `target` to that.
template <typename Value, typename Target>
CLI::Option* AddNamedOption(CLI::App& app, const std::string& flag,
                            Target& target,
                            const std::map<std::string, Value>& values,
                            const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return app
      .add_option_function<std::string>(
          flag,
          [&target, values](const std::string& name) {
            target = values.at(name);
          },
          help)
      ->check(OneOf(names));
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_FLAG_CHECKS_H_
