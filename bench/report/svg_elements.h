// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_REPORT_SVG_ELEMENTS_H_
#define OUTRIDER_BENCH_REPORT_SVG_ELEMENTS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outrider::bench {

// What charts are drawn with; text uses the page's classes.

inline constexpr char kInk[] = "#1f2933";
inline constexpr char kGrid[] = "#d9dee3";

// The tag that opens a picture of this size.
std::string OpenSvg(double width, double height, absl::string_view title);

struct TextAt {
  double x = 0;
  double y = 0;
  const char* anchor = "middle";
  const char* css_class = "";
  const char* fill = kInk;
};
std::string SvgText(const TextAt& at, absl::string_view text);

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};
// `more`: further attributes.
std::string SvgRect(const Box& box, absl::string_view fill,
                    absl::string_view title = "", absl::string_view more = "");

std::string SvgLine(double x1, double y1, double x2, double y2,
                    absl::string_view color, absl::string_view more = "");

// The distance of ticks of an axis that has room for about so many: 1, 2 or 5
// times a power of ten.
double NiceStep(double range, int num_steps);

// Makes &, <, > and " harmless.
std::string EscapeHtml(absl::string_view text);

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_REPORT_SVG_ELEMENTS_H_
