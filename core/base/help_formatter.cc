// SPDX-License-Identifier: Apache-2.0
#include "core/base/help_formatter.h"

#include <sstream>

namespace outrider {
namespace {

constexpr size_t kWidth = 80;
const char kIndent[] = "      ";

// "INT:INT in [0 - 16]" is a number, "TEXT:{a,b}" a word.
std::string ArgumentOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == "UINT" || name == "FLOAT") return "N";
  return name;
}

std::string Wrapped(const std::string& text, const std::string& indent) {
  std::istringstream words(text);
  std::string wrapped;
  std::string line = indent;
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kWidth) {
      wrapped += line + "\n";
      line = indent;
    }
    line += (line == indent ? "" : " ") + word;
  }
  return wrapped + line + "\n";
}

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* app) const {
  const std::string text = CLI::Formatter::make_description(app);
  return text.empty() ? text : Wrapped(text, "");
}

std::string HelpFormatter::make_option_name(const CLI::Option* option,
                                            bool is_positional) const {
  std::string name = CLI::Formatter::make_option_name(option, is_positional);
  for (size_t open = 0; (open = name.find('{')) != std::string::npos;) {
    name.erase(open, name.find('}', open) + 1 - open);
  }
  return name;
}

std::string HelpFormatter::make_option(const CLI::Option* option,
                                       bool is_positional) const {
  std::string flag = "  " + make_option_name(option, is_positional);
  const std::string argument = ArgumentOf(*option);
  if (!argument.empty()) flag += " " + argument;
  if (option->get_expected_max() > 1) flag += " ...";
  if (option->get_required()) flag += " (needed)";
  if (!option->get_default_str().empty()) {
    flag += " (default: " + option->get_default_str() + ")";
  }
  return flag + "\n" + Wrapped(option->get_description(), kIndent);
}

}  // namespace outrider
