// SPDX-License-Identifier: Apache-2.0
#include "core/tokenizer/text_steps_json.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/json/json_fields.h"
#include "core/tokenizer/utf8.h"

namespace outrider {
namespace {

using nlohmann::json;

constexpr size_t kMaxReplacementBytes = 64;
constexpr size_t kMaxNormalizerSteps = 8;
constexpr size_t kMaxGrowth = 16;  // of a text, by all of them
constexpr size_t kNfcGrowth = 3;   // of form C, at most (Unicode's annex 15)
constexpr int kMaxStripped = 1024;

absl::StatusOr<std::string> ShortString(const JsonFields& fields,
                                        absl::string_view name) {
  OUTRIDER_ASSIGN_OR_RETURN(std::string text, fields.String(name));
  if (text.size() > kMaxReplacementBytes) {
    return fields.Invalid(absl::StrCat(name, " has ", text.size(),
                                       " bytes, more than ",
                                       kMaxReplacementBytes));
  }
  return text;
}

absl::StatusOr<std::string> Character(const JsonFields& fields,
                                      absl::string_view name) {
  OUTRIDER_ASSIGN_OR_RETURN(std::string text, fields.String(name));
  size_t end = 0;
  if (!text.empty()) NextCodePoint(text, &end);
  if (text.empty() || end != text.size()) {
    return fields.Invalid(absl::StrCat(name, " is not one character"));
  }
  return text;
}

// The {"String": ...} of a Replace.
absl::StatusOr<std::string> ReplacePattern(const JsonFields& fields) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields pattern, fields.Object("pattern"));
  OUTRIDER_RETURN_IF_ERROR(pattern.AllAmong({"String"}));
  OUTRIDER_ASSIGN_OR_RETURN(std::string text, ShortString(pattern, "String"));
  if (text.empty()) {
    return fields.Invalid("pattern is empty");
  }
  return text;
}

absl::StatusOr<NormalizerStep> ParseNormalizerStep(absl::string_view type,
                                                   const JsonFields& fields) {
  NormalizerStep step;
  if (type == "NFC") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type"}));
    step.kind = NormalizerStep::Kind::kNfc;
  } else if (type == "Prepend") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "prepend"}));
    step.kind = NormalizerStep::Kind::kPrepend;
    OUTRIDER_ASSIGN_OR_RETURN(step.content, ShortString(fields, "prepend"));
  } else if (type == "Replace") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "pattern", "content"}));
    step.kind = NormalizerStep::Kind::kReplace;
    OUTRIDER_ASSIGN_OR_RETURN(step.pattern, ReplacePattern(fields));
    OUTRIDER_ASSIGN_OR_RETURN(step.content, ShortString(fields, "content"));
  } else {
    return fields.Unsupported(absl::StrCat("type ", type));
  }
  return step;
}

// What a step may make of a text, in multiples of its length.
size_t GrowthOf(const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return kNfcGrowth;
    case NormalizerStep::Kind::kPrepend:
      return 1;  // and a constant
    case NormalizerStep::Kind::kReplace:
      return std::max<size_t>(1,
                              (step.content.size() + step.pattern.size() - 1) /
                                  step.pattern.size());
  }
  return 1;
}

// A text of a few MiB is to stay within memory, and its length within an int.
absl::Status CheckGrowth(const std::vector<NormalizerStep>& steps,
                         const JsonFields& fields) {
  if (steps.size() > kMaxNormalizerSteps) {
    return fields.Unsupported(
        absl::StrCat("more than ", kMaxNormalizerSteps, " steps"));
  }
  size_t growth = 1;
  for (const NormalizerStep& step : steps) growth *= GrowthOf(step);
  if (growth > kMaxGrowth) {
    return fields.Unsupported(absl::StrCat("steps that may make a text ",
                                           growth, " times as long, more than ",
                                           kMaxGrowth));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepend> MetaspacePrepend(const JsonFields& fields) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::string scheme,
                            fields.String("prepend_scheme", "always"));
  // The older form of the scheme; where both are there they must agree.
  OUTRIDER_ASSIGN_OR_RETURN(const bool add_prefix_space,
                            fields.Bool("add_prefix_space", scheme != "never"));
  if (!add_prefix_space && scheme != "never") {
    return fields.Invalid("add_prefix_space contradicts prepend_scheme");
  }
  if (scheme == "always") return Prepend::kAlways;
  if (scheme == "first") return Prepend::kFirst;
  if (scheme == "never") return Prepend::kNever;
  return fields.Unsupported(absl::StrCat("prepend_scheme '", scheme, "'"));
}

absl::Status CheckMetaspaceFields(const JsonFields& fields) {
  return fields.AllAmong({"type", "replacement", "str_rep", "add_prefix_space",
                          "prepend_scheme", "split"});
}

absl::StatusOr<PretokenizerSpec> ParseMetaspace(const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(CheckMetaspaceFields(fields));
  PretokenizerSpec spec;
  spec.kind = PretokenizerSpec::Kind::kMetaspace;
  OUTRIDER_ASSIGN_OR_RETURN(spec.replacement, Character(fields, "replacement"));
  OUTRIDER_ASSIGN_OR_RETURN(spec.prepend, MetaspacePrepend(fields));
  OUTRIDER_ASSIGN_OR_RETURN(spec.cut_at_replacement,
                            fields.Bool("split", true));
  return spec;
}

absl::StatusOr<PretokenizerSpec> ParseByteLevel(const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(fields.AllAmong(
      {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  PretokenizerSpec spec;
  spec.kind = PretokenizerSpec::Kind::kByteLevel;
  OUTRIDER_ASSIGN_OR_RETURN(const bool add_prefix_space,
                            fields.Bool("add_prefix_space", true));
  OUTRIDER_ASSIGN_OR_RETURN(const bool use_regex,
                            fields.Bool("use_regex", true));
  spec.prepend = add_prefix_space ? Prepend::kAlways : Prepend::kNever;
  spec.pattern = use_regex ? SplitPattern::kGpt2 : SplitPattern::kWhole;
  return spec;
}

absl::StatusOr<SplitPattern> ParseSplit(const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(
      fields.AllAmong({"type", "pattern", "behavior", "invert"}));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string behavior,
                            fields.String("behavior"));
  OUTRIDER_ASSIGN_OR_RETURN(const bool invert, fields.Bool("invert", false));
  if (behavior != "Isolated" || invert) {
    return fields.Unsupported(absl::StrCat("a Split with behavior '", behavior,
                                           "' and invert ", invert));
  }
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields pattern, fields.Object("pattern"));
  OUTRIDER_RETURN_IF_ERROR(pattern.AllAmong({"Regex"}));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
  const std::optional<SplitPattern> known = KnownSplitPattern(regex);
  if (!known) {
    return fields.Unsupported(absl::StrCat("a Split by the pattern ", regex));
  }
  return *known;
}

absl::StatusOr<Digits> ParseDigits(const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "individual_digits"}));
  OUTRIDER_ASSIGN_OR_RETURN(const bool individual,
                            fields.Bool("individual_digits"));
  return individual ? Digits::kEachAlone : Digits::kRunsAlone;
}

// Byte-level models of today: their own Split, then ByteLevel for the bytes; or
// Digits, then ByteLevel for what lies between them.
absl::StatusOr<PretokenizerSpec> ParsePretokenizerSequence(
    const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "pretokenizers"}));
  OUTRIDER_ASSIGN_OR_RETURN(const json* parts, fields.Array("pretokenizers"));
  if (parts->size() == 1) return ParsePretokenizer((*parts)[0]);
  if (parts->size() != 2) {
    return fields.Unsupported(
        absl::StrCat("a Sequence of ", parts->size(), " parts"));
  }
  OUTRIDER_ASSIGN_OR_RETURN(
      const JsonFields first,
      JsonFields::Of((*parts)[0], "pre_tokenizer.pretokenizers[0]"));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, first.String("type"));
  if (type != "Split" && type != "Digits") {
    return first.Unsupported(absl::StrCat(type, " before another part"));
  }
  OUTRIDER_ASSIGN_OR_RETURN(PretokenizerSpec spec,
                            ParsePretokenizer((*parts)[1]));
  const bool is_plain = spec.kind == PretokenizerSpec::Kind::kByteLevel &&
                        spec.prepend == Prepend::kNever &&
                        spec.digits == Digits::kWithText;
  if (type == "Digits") {
    OUTRIDER_ASSIGN_OR_RETURN(spec.digits, ParseDigits(first));
    if (is_plain) return spec;
    return fields.Unsupported(
        "Digits before anything but ByteLevel without add_prefix_space");
  }
  OUTRIDER_ASSIGN_OR_RETURN(const SplitPattern pattern, ParseSplit(first));
  if (!is_plain || spec.pattern != SplitPattern::kWhole) {
    return fields.Unsupported(
        "a Split before anything but ByteLevel without use_regex and "
        "add_prefix_space");
  }
  spec.pattern = pattern;
  return spec;
}

// The parts of a decoder's Sequence, which come in this order.
enum class DecoderPart { kReplace, kByteFallback, kFuse, kStrip };

absl::StatusOr<DecoderPart> ParseDecoderPart(const JsonFields& fields,
                                             DecoderSpec* spec) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "Replace") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "pattern", "content"}));
    OUTRIDER_ASSIGN_OR_RETURN(spec->pattern, ReplacePattern(fields));
    OUTRIDER_ASSIGN_OR_RETURN(spec->content, ShortString(fields, "content"));
    return DecoderPart::kReplace;
  }
  if (type == "ByteFallback") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type"}));
    spec->byte_fallback = true;
    return DecoderPart::kByteFallback;
  }
  if (type == "Fuse") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type"}));
    return DecoderPart::kFuse;
  }
  if (type != "Strip") return fields.Unsupported(absl::StrCat("type ", type));
  OUTRIDER_RETURN_IF_ERROR(
      fields.AllAmong({"type", "content", "start", "stop"}));
  OUTRIDER_ASSIGN_OR_RETURN(spec->strip, Character(fields, "content"));
  OUTRIDER_ASSIGN_OR_RETURN(const json* start, fields.Any("start"));
  OUTRIDER_ASSIGN_OR_RETURN(const json* stop, fields.Any("stop"));
  OUTRIDER_ASSIGN_OR_RETURN(
      spec->max_stripped,
      JsonIndex(*start, kMaxStripped, "decoder Strip.start"));
  OUTRIDER_ASSIGN_OR_RETURN(
      const int stop_length,
      JsonIndex(*stop, kMaxStripped, "decoder Strip.stop"));
  if (stop_length > 0) return fields.Unsupported("a Strip at the end");
  return DecoderPart::kStrip;
}

absl::StatusOr<DecoderSpec> ParseDecoderSequence(const JsonFields& fields) {
  OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "decoders"}));
  OUTRIDER_ASSIGN_OR_RETURN(const json* parts, fields.Array("decoders"));
  DecoderSpec spec;
  spec.kind = DecoderSpec::Kind::kPieces;
  std::optional<DecoderPart> last;
  for (const json& item : *parts) {
    OUTRIDER_ASSIGN_OR_RETURN(const JsonFields part_fields,
                              JsonFields::Of(item, "a part of the decoder"));
    OUTRIDER_ASSIGN_OR_RETURN(const DecoderPart part,
                              ParseDecoderPart(part_fields, &spec));
    // Strip without Fuse before it would be at the start of every token.
    if ((last && *last >= part) ||
        (part == DecoderPart::kStrip && last != DecoderPart::kFuse)) {
      return fields.Unsupported(
          "a Sequence in another order than Replace, "
          "ByteFallback, Fuse, Strip");
    }
    last = part;
  }
  return spec;
}

}  // namespace

absl::Status AppendNormalizer(const json& value,
                              std::vector<NormalizerStep>* steps) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(value, "normalizer"));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type != "Sequence") {
    OUTRIDER_ASSIGN_OR_RETURN(NormalizerStep step,
                              ParseNormalizerStep(type, fields));
    steps->push_back(std::move(step));
    return CheckGrowth(*steps, fields);
  }
  OUTRIDER_RETURN_IF_ERROR(fields.AllAmong({"type", "normalizers"}));
  OUTRIDER_ASSIGN_OR_RETURN(const json* parts, fields.Array("normalizers"));
  for (const json& part : *parts) {
    OUTRIDER_RETURN_IF_ERROR(AppendNormalizer(part, steps));
  }
  return absl::OkStatus();
}

absl::StatusOr<PretokenizerSpec> ParsePretokenizer(const json& value) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(value, "pre_tokenizer"));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "ByteLevel") return ParseByteLevel(fields);
  if (type == "Metaspace") return ParseMetaspace(fields);
  if (type == "Sequence") return ParsePretokenizerSequence(fields);
  return fields.Unsupported(absl::StrCat("type ", type));
}

absl::StatusOr<DecoderSpec> ParseDecoder(const json& value) {
  OUTRIDER_ASSIGN_OR_RETURN(const JsonFields fields,
                            JsonFields::Of(value, "decoder"));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "ByteLevel") {
    OUTRIDER_RETURN_IF_ERROR(fields.AllAmong(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    return DecoderSpec{.kind = DecoderSpec::Kind::kByteLevel};
  }
  if (type == "Metaspace") {
    OUTRIDER_RETURN_IF_ERROR(CheckMetaspaceFields(fields));
    OUTRIDER_ASSIGN_OR_RETURN(const Prepend prepend, MetaspacePrepend(fields));
    OUTRIDER_ASSIGN_OR_RETURN(std::string pattern,
                              Character(fields, "replacement"));
    return DecoderSpec{.kind = prepend == Prepend::kNever
                                   ? DecoderSpec::Kind::kPieces
                                   : DecoderSpec::Kind::kMetaspace,
                       .pattern = std::move(pattern),
                       .content = " "};
  }
  if (type == "Sequence") return ParseDecoderSequence(fields);
  return fields.Unsupported(absl::StrCat("type ", type));
}

}  // namespace outrider
