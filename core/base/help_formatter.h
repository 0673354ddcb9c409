// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_HELP_FORMATTER_H_
#define OUTRIDER_CORE_BASE_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>

namespace outrider {

// --help for a terminal of 80 columns: a flag, what it takes and its default,
// and beneath it what it does. Ranges, relations between flags and what their
// opposites are set to, which CLI11 would add, are said by the errors.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_name(const CLI::Option* option,
                               bool is_positional) const override;
  std::string make_option(const CLI::Option* option,
                          bool is_positional) const override;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_HELP_FORMATTER_H_
