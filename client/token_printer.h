// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_TOKEN_PRINTER_H_
#define OUTRIDER_CLIENT_TOKEN_PRINTER_H_

#include <ostream>

#include "absl/strings/string_view.h"
#include "core/wire/generation_update.h"

namespace outrider::client {

// Prints a generation as it comes. Plain: the text, byte by byte, and nothing
// else. Harmless: the text with control characters shown as U+FFFD, as a model
// may write what a terminal would obey. Marked: likewise, with the prompt's end
// dimmed before it, and tokens in the colour of their origin; rounds without
// drafts have nothing to mark. Thread-compatible.
class TokenPrinter {
 public:
  enum class Style { kPlain, kHarmless, kMarked };

  // `out` must outlive the printer.
  TokenPrinter(std::ostream& out, Style style) : out_(out), style_(style) {}

  void PrintPrompt(absl::string_view prompt);
  void Print(const GenerationUpdate& update);

  // Whether the last character printed was a line's end, or there was none.
  bool at_line_start() const { return at_line_start_; }

  // What the colours mean, in colour; empty where there are none.
  static absl::string_view Legend(Style style);

 private:
  void PrintText(absl::string_view colour, absl::string_view text);

  std::ostream& out_;
  const Style style_;
  bool at_line_start_ = true;
};

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_TOKEN_PRINTER_H_
