// SPDX-License-Identifier: Apache-2.0
#include "client/token_printer.h"

#include <string>

namespace outrider::client {
namespace {

constexpr absl::string_view kReset = "\x1b[0m";
constexpr absl::string_view kPrompt = "\x1b[2m";                // dim
constexpr absl::string_view kDraft = "\x1b[32m";                // green
constexpr absl::string_view kReplacement = "\x1b[1m\x1b[33m";   // bold yellow
constexpr absl::string_view kBonus = "\x1b[36m";                // cyan
constexpr absl::string_view kShownForControl = "\xef\xbf\xbd";  // U+FFFD

// More of a long prompt would push the screen's content away.
constexpr size_t kMaxPromptBytes = 2000;

absl::string_view Colour(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kDraft:
      return kDraft;
    case TokenOrigin::kReplacement:
      return kReplacement;
    case TokenOrigin::kBonus:
      return kBonus;
    case TokenOrigin::kUnknown:
      break;
  }
  return "";
}

// Length of the control character at the start of `text`: C0 but for tab and
// newline, DEL, or C1 in its UTF-8 form; 0 where there is none.
size_t ControlLength(absl::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte == '\n' || byte == '\t') return 0;
  if (byte < 0x20 || byte == 0x7f) return 1;
  const bool is_c1 = byte == 0xc2 && text.size() > 1 &&
                     static_cast<unsigned char>(text[1]) < 0xa0;
  return is_c1 ? 2 : 0;
}

std::string WithoutControls(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = ControlLength(text);
    if (length == 0) {
      shown.push_back(text[0]);
    } else {
      shown.append(kShownForControl.data(), kShownForControl.size());
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

// The last whole characters of at most kMaxPromptBytes.
absl::string_view Tail(absl::string_view text) {
  if (text.size() <= kMaxPromptBytes) return text;
  text.remove_prefix(text.size() - kMaxPromptBytes);
  while (!text.empty() && (text[0] & 0xc0) == 0x80) text.remove_prefix(1);
  return text;
}

}  // namespace

void TokenPrinter::PrintPrompt(absl::string_view prompt) {
  if (style_ != Style::kMarked) return;
  const absl::string_view tail = Tail(prompt);
  if (tail.size() < prompt.size()) PrintText(kPrompt, "[...] ");
  PrintText(kPrompt, tail);
  out_.flush();
}

void TokenPrinter::Print(const GenerationUpdate& update) {
  const bool has_drafts = update.round && update.round->num_drafted > 0;
  for (const GeneratedToken& token : update.tokens) {
    PrintText(has_drafts ? Colour(token.origin) : "", token.text);
  }
  if (update.finish) PrintText("", update.finish->trailing_text);
  out_.flush();
}

absl::string_view TokenPrinter::Legend(Style style) {
  if (style != Style::kMarked) return "";
  return "\x1b[32maccepted draft\x1b[0m, \x1b[1m\x1b[33mreplacement by the "
         "target\x1b[0m, \x1b[36mbonus from the target\x1b[0m";
}

void TokenPrinter::PrintText(absl::string_view colour, absl::string_view text) {
  if (text.empty()) return;
  at_line_start_ = text.back() == '\n';
  if (style_ == Style::kPlain) {
    out_ << text;
  } else if (style_ == Style::kHarmless || colour.empty()) {
    out_ << WithoutControls(text);
  } else {
    out_ << colour << WithoutControls(text) << kReset;
  }
}

}  // namespace outrider::client
