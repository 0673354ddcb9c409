// SPDX-License-Identifier: Apache-2.0
#include "bench/report/svg_elements.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace outrider::bench {

std::string OpenSvg(double width, double height, absl::string_view title) {
  return absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\" aria-label=\"%s\">\n",
      width, height, width, height, EscapeHtml(title));
}

std::string SvgText(const TextAt& at, absl::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\" "
      "fill=\"%s\">%s</text>\n",
      at.x, at.y, at.anchor, at.css_class, at.fill, EscapeHtml(text));
}

std::string SvgRect(const Box& box, absl::string_view fill,
                    absl::string_view title, absl::string_view more) {
  return absl::StrFormat(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
      "%s><title>%s</title></rect>\n",
      box.x, box.y, box.width, box.height, fill, more, EscapeHtml(title));
}

std::string SvgLine(double x1, double y1, double x2, double y2,
                    absl::string_view color, absl::string_view more) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
      "%s/>\n",
      x1, y1, x2, y2, color, more);
}

double NiceStep(double range, int num_steps) {
  const double raw = range / num_steps;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace outrider::bench
